; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
;
; A launch of a prepared kernel, as a function of CPython (METH_FASTCALL) with the parameters of `DirectLaunch`: args,
; block, grid, stream, attributes. It compares each argument with its entry, writes the values onto the stack, and calls
; the driver without the interpreter's lock. Whatever it does not expect it leaves to the state's `otherwise`, which
; takes the same parameters. `native_launch.py` declares both structures, in the same order.

%State = type {
  i64,         ;  0  number of arguments
  ptr,         ;  1  their entries
  ptr,         ;  2  otherwise: a callable
  ptr,         ;  3  the attributes that are expected
  ptr,         ;  4  None
  ptr,         ;  5  the type int
  ptr,         ;  6  the type tuple
  ptr,         ;  7  the type float
  ptr,         ;  8  False
  ptr,         ;  9  torch's method is_neg
  [3 x i64],   ; 10  the block
  [3 x i64],   ; 11  the least grid
  [3 x i64],   ; 12  the greatest grid
  i32,         ; 13  DLDeviceType whose current stream None is, 0 for the default stream
  i32,         ; 14  its number
  ptr,         ; 15  DLPackDLTensorFromPyObjectNoSync
  ptr,         ; 16  DLPackCurrentWorkStream
  ptr,         ; 17  cuLaunchKernelEx
  ptr,         ; 18  CUfunction
  [7 x i64],   ; 19  CUlaunchConfig, but for grid and stream
  i64,         ; 20  number of the kernel's parameters
  ptr,         ; 21  the offset of each among the values
  i64,         ; 22  number of the values that the tensor maps depend on
  ptr,         ; 23  the offset of each
  ptr,         ; 24  each, when the maps were made
  ptr,         ; 25  the maps
  i64,         ; 26  their size in bytes
  i64,         ; 27  their offset
  ptr          ; 28  NotImplemented, which tells that the arguments are for another launch
}

%Entry = type {
  i64,  ; 0  kind: 0 a tensor, 1 this very object, 2 a float as f32, 3 a float as f64, 4 an int of 32 bits, 5 of 64
  ptr,  ; 1  the type of a tensor, or the object
  i64,  ; 2  DLDevice
  i64,  ; 3  ndim and DLDataType
  ptr,  ; 4  extents and strides
  i64,  ; 5  the bits of an address that are compared
  i64,  ; 6  their value
  i64,  ; 7  the least int
  i64,  ; 8  the greatest
  i64   ; 9  the offset among the values
}

%DLTensor = type { ptr, i64, i64, ptr, ptr, i64 }

declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @PyErr_Clear()
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Reads an int, or a tuple of one to three, into three sizes, of which those that are not given are 1.
define internal i1 @sizes(ptr %state, ptr %given, ptr %to, ptr %overflow) alwaysinline {
  store i64 1, ptr %to
  %second = getelementptr i64, ptr %to, i64 1
  store i64 1, ptr %second
  %third = getelementptr i64, ptr %to, i64 2
  store i64 1, ptr %third
  %int.at = getelementptr %State, ptr %state, i64 0, i32 5
  %int = load ptr, ptr %int.at
  %tuple.at = getelementptr %State, ptr %state, i64 0, i32 6
  %tuple = load ptr, ptr %tuple.at
  %type.at = getelementptr ptr, ptr %given, i64 1
  %type = load ptr, ptr %type.at
  %is.tuple = icmp eq ptr %type, %tuple
  br i1 %is.tuple, label %several, label %single
single:
  %is.int = icmp eq ptr %type, %int
  br i1 %is.int, label %read.single, label %no
read.single:
  %alone = call i64 @PyLong_AsLongLongAndOverflow(ptr %given, ptr %overflow)
  store i64 %alone, ptr %to
  br label %yes
several:
  %count = call i64 @PyTuple_Size(ptr %given)
  %less = add i64 %count, -1
  %fits = icmp ult i64 %less, 3
  br i1 %fits, label %loop, label %no
loop:
  %i = phi i64 [ 0, %several ], [ %next, %read ]
  %item = call ptr @PyTuple_GetItem(ptr %given, i64 %i)
  %item.type.at = getelementptr ptr, ptr %item, i64 1
  %item.type = load ptr, ptr %item.type.at
  %item.int = icmp eq ptr %item.type, %int
  br i1 %item.int, label %read, label %no
read:
  %size = call i64 @PyLong_AsLongLongAndOverflow(ptr %item, ptr %overflow)  ; -1 beyond 64 bits, which nothing allows
  %at = getelementptr i64, ptr %to, i64 %i
  store i64 %size, ptr %at
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

; 0 for a tensor that is as its entry says, whose address it writes; 1 for another, 2 for one that it cannot tell.
define internal i32 @tensor(ptr %state, ptr %entry, ptr %argument, ptr %read, ptr %values) {
  %own.type.at = getelementptr ptr, ptr %argument, i64 1
  %own.type = load ptr, ptr %own.type.at
  %type.at = getelementptr %Entry, ptr %entry, i64 0, i32 1
  %type = load ptr, ptr %type.at
  %same.type = icmp eq ptr %own.type, %type
  br i1 %same.type, label %describe, label %other
describe:
  %from.at = getelementptr %State, ptr %state, i64 0, i32 15
  %from = load ptr, ptr %from.at
  %failed = call i32 %from(ptr %argument, ptr %read)
  %works = icmp eq i32 %failed, 0
  br i1 %works, label %compare, label %no
compare:
  %device.at = getelementptr %DLTensor, ptr %read, i64 0, i32 1
  %device = load i64, ptr %device.at
  %want.device.at = getelementptr %Entry, ptr %entry, i64 0, i32 2
  %want.device = load i64, ptr %want.device.at
  %same.device = icmp eq i64 %device, %want.device
  %kind.at = getelementptr %DLTensor, ptr %read, i64 0, i32 2
  %kind = load i64, ptr %kind.at
  %want.kind.at = getelementptr %Entry, ptr %entry, i64 0, i32 3
  %want.kind = load i64, ptr %want.kind.at
  %same.kind = icmp eq i64 %kind, %want.kind
  %same = and i1 %same.device, %same.kind
  br i1 %same, label %dims, label %other
dims:
  %rank = and i64 %kind, 4294967295
  %shape.at = getelementptr %DLTensor, ptr %read, i64 0, i32 3
  %shape = load ptr, ptr %shape.at
  %strides.at = getelementptr %DLTensor, ptr %read, i64 0, i32 4
  %strides = load ptr, ptr %strides.at
  %has.strides = icmp ne ptr %strides, null
  %want.at = getelementptr %Entry, ptr %entry, i64 0, i32 4
  %want = load ptr, ptr %want.at
  %want.strides = getelementptr i64, ptr %want, i64 %rank
  %is.scalar = icmp eq i64 %rank, 0
  br i1 %is.scalar, label %address, label %strided
strided:
  br i1 %has.strides, label %mode, label %no
mode:
  %i = phi i64 [ 0, %strided ], [ %next, %both ]
  %extent.at = getelementptr i64, ptr %shape, i64 %i
  %extent = load i64, ptr %extent.at
  %want.extent.at = getelementptr i64, ptr %want, i64 %i
  %want.extent = load i64, ptr %want.extent.at
  %same.extent = icmp eq i64 %extent, %want.extent
  %stride.at = getelementptr i64, ptr %strides, i64 %i
  %stride = load i64, ptr %stride.at
  %want.stride.at = getelementptr i64, ptr %want.strides, i64 %i
  %want.stride = load i64, ptr %want.stride.at
  %same.stride = icmp eq i64 %stride, %want.stride
  %same.mode = and i1 %same.extent, %same.stride
  br i1 %same.mode, label %both, label %other
both:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %rank
  br i1 %more, label %mode, label %address
address:
  %data = load i64, ptr %read
  %offset.at = getelementptr %DLTensor, ptr %read, i64 0, i32 5
  %offset = load i64, ptr %offset.at
  %place = add i64 %data, %offset
  %is.somewhere = icmp ne i64 %place, 0
  %mask.at = getelementptr %Entry, ptr %entry, i64 0, i32 5
  %mask = load i64, ptr %mask.at
  %bits = and i64 %place, %mask
  %want.bits.at = getelementptr %Entry, ptr %entry, i64 0, i32 6
  %want.bits = load i64, ptr %want.bits.at
  %is.aligned = icmp eq i64 %bits, %want.bits
  %is.place = and i1 %is.somewhere, %is.aligned
  br i1 %is.place, label %sign, label %other
sign:  ; DLPack does not tell of torch's negative views
  %is.neg.at = getelementptr %State, ptr %state, i64 0, i32 9
  %is.neg = load ptr, ptr %is.neg.at
  %one = alloca ptr
  store ptr %argument, ptr %one
  %answer = call ptr @PyObject_Vectorcall(ptr %is.neg, ptr %one, i64 1, ptr null)
  %answered = icmp ne ptr %answer, null
  br i1 %answered, label %told, label %no
told:
  call void @Py_DecRef(ptr %answer)
  %false.at = getelementptr %State, ptr %state, i64 0, i32 8
  %false = load ptr, ptr %false.at
  %is.positive = icmp eq ptr %answer, %false
  br i1 %is.positive, label %write, label %no
write:
  %to.at = getelementptr %Entry, ptr %entry, i64 0, i32 9
  %to = load i64, ptr %to.at
  %value = getelementptr i8, ptr %values, i64 %to
  store i64 %place, ptr %value
  ret i32 0
other:
  ret i32 1
no:
  ret i32 2
}

; Whether a number is of its entry's type and within its range; writes it.
define internal i1 @number(ptr %state, ptr %entry, ptr %argument, i64 %kind, ptr %values, ptr %overflow) {
  %type.at = getelementptr ptr, ptr %argument, i64 1
  %type = load ptr, ptr %type.at
  %to.at = getelementptr %Entry, ptr %entry, i64 0, i32 9
  %to = load i64, ptr %to.at
  %value = getelementptr i8, ptr %values, i64 %to
  %is.whole = icmp uge i64 %kind, 4
  br i1 %is.whole, label %whole, label %real
real:
  %float.at = getelementptr %State, ptr %state, i64 0, i32 7
  %float = load ptr, ptr %float.at
  %is.float = icmp eq ptr %type, %float
  br i1 %is.float, label %read.real, label %no
read.real:
  %double = call double @PyFloat_AsDouble(ptr %argument)
  %is.single = icmp eq i64 %kind, 2
  br i1 %is.single, label %single, label %write.double
write.double:
  store double %double, ptr %value
  ret i1 true
single:
  %rounded = fptrunc double %double to float
  store float %rounded, ptr %value
  ret i1 true
whole:
  %int.at = getelementptr %State, ptr %state, i64 0, i32 5
  %int = load ptr, ptr %int.at
  %is.int = icmp eq ptr %type, %int
  br i1 %is.int, label %read.whole, label %no
read.whole:
  %long = call i64 @PyLong_AsLongLongAndOverflow(ptr %argument, ptr %overflow)
  %over = load i32, ptr %overflow
  %is.long = icmp eq i32 %over, 0
  %least.at = getelementptr %Entry, ptr %entry, i64 0, i32 7
  %least = load i64, ptr %least.at
  %greatest.at = getelementptr %Entry, ptr %entry, i64 0, i32 8
  %greatest = load i64, ptr %greatest.at
  %is.above = icmp sge i64 %long, %least
  %is.below = icmp sle i64 %long, %greatest
  %is.between = and i1 %is.above, %is.below
  %is.fine = and i1 %is.between, %is.long
  br i1 %is.fine, label %write.whole, label %no
write.whole:
  %is.wide = icmp eq i64 %kind, 5
  br i1 %is.wide, label %write.long, label %write.int
write.long:
  store i64 %long, ptr %value
  ret i1 true
write.int:
  %short = trunc i64 %long to i32
  store i32 %short, ptr %value
  ret i1 true
no:
  ret i1 false
}

define ptr @launch(ptr %self, ptr %given, i64 %count) {
  %values = alloca [4096 x i8], align 64
  %places = alloca [512 x ptr]
  %configuration = alloca [7 x i64]
  %read = alloca %DLTensor
  %size = alloca [3 x i64]
  %overflow = alloca i32
  %handle = alloca ptr
  %kept = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %state = call ptr @PyLong_AsVoidPtr(ptr %kept)
  %is.all = icmp eq i64 %count, 5
  br i1 %is.all, label %attributes, label %otherwise
attributes:
  %attributes.at = getelementptr ptr, ptr %given, i64 4
  %attributes.given = load ptr, ptr %attributes.at
  %want.attributes.at = getelementptr %State, ptr %state, i64 0, i32 3
  %want.attributes = load ptr, ptr %want.attributes.at
  %same.attributes = icmp eq ptr %attributes.given, %want.attributes
  br i1 %same.attributes, label %block, label %otherwise
block:
  %block.at = getelementptr ptr, ptr %given, i64 1
  %block.given = load ptr, ptr %block.at
  %block.read = call i1 @sizes(ptr %state, ptr %block.given, ptr %size, ptr %overflow)
  br i1 %block.read, label %block.compare, label %otherwise
block.compare:
  %own.block = getelementptr %State, ptr %state, i64 0, i32 10
  %same.block = call i1 @between(ptr %size, ptr %own.block, ptr %own.block)
  br i1 %same.block, label %grid, label %otherwise
grid:
  %grid.at = getelementptr ptr, ptr %given, i64 2
  %grid.given = load ptr, ptr %grid.at
  %grid.read = call i1 @sizes(ptr %state, ptr %grid.given, ptr %size, ptr %overflow)
  br i1 %grid.read, label %grid.compare, label %otherwise
grid.compare:
  %least.grid = getelementptr %State, ptr %state, i64 0, i32 11
  %greatest.grid = getelementptr %State, ptr %state, i64 0, i32 12
  %grid.fits = call i1 @between(ptr %size, ptr %least.grid, ptr %greatest.grid)
  br i1 %grid.fits, label %args, label %otherwise
args:
  %args.given = load ptr, ptr %given
  %args.count = call i64 @PyTuple_Size(ptr %args.given)
  %want.count = load i64, ptr %state
  %same.count = icmp eq i64 %args.count, %want.count
  br i1 %same.count, label %entries, label %otherwise
entries:
  %entries.at = getelementptr %State, ptr %state, i64 0, i32 1
  %entries.first = load ptr, ptr %entries.at
  %none.left = icmp eq i64 %want.count, 0
  br i1 %none.left, label %maps, label %argument
argument:
  %i = phi i64 [ 0, %entries ], [ %next, %fits ]
  %entry = getelementptr %Entry, ptr %entries.first, i64 %i
  %arg = call ptr @PyTuple_GetItem(ptr %args.given, i64 %i)
  %kind = load i64, ptr %entry
  switch i64 %kind, label %number [ i64 0, label %tensor
                                    i64 1, label %object ]
tensor:
  %is.other = call i32 @tensor(ptr %state, ptr %entry, ptr %arg, ptr %read, ptr %values)
  switch i32 %is.other, label %otherwise [ i32 0, label %fits
                                           i32 1, label %other ]
object:
  %object.at = getelementptr %Entry, ptr %entry, i64 0, i32 1
  %object.want = load ptr, ptr %object.at
  %object.same = icmp eq ptr %object.want, %arg
  br i1 %object.same, label %fits, label %otherwise
number:
  %number.fits = call i1 @number(ptr %state, ptr %entry, ptr %arg, i64 %kind, ptr %values, ptr %overflow)
  br i1 %number.fits, label %fits, label %otherwise
fits:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %want.count
  br i1 %more, label %argument, label %maps
maps:
  %maps.count.at = getelementptr %State, ptr %state, i64 0, i32 22
  %maps.count = load i64, ptr %maps.count.at
  %no.maps = icmp eq i64 %maps.count, 0
  br i1 %no.maps, label %parameters, label %mapped.begin
mapped.begin:
  %mapped.offsets.at = getelementptr %State, ptr %state, i64 0, i32 23
  %mapped.offsets = load ptr, ptr %mapped.offsets.at
  %mapped.at = getelementptr %State, ptr %state, i64 0, i32 24
  %mapped = load ptr, ptr %mapped.at
  br label %mapped.loop
mapped.loop:
  %m = phi i64 [ 0, %mapped.begin ], [ %m.next, %mapped.same ]
  %m.offset.at = getelementptr i64, ptr %mapped.offsets, i64 %m
  %m.offset = load i64, ptr %m.offset.at
  %m.now.at = getelementptr i8, ptr %values, i64 %m.offset
  %m.now = load i64, ptr %m.now.at
  %m.then.at = getelementptr i64, ptr %mapped, i64 %m
  %m.then = load i64, ptr %m.then.at
  %m.same = icmp eq i64 %m.now, %m.then
  br i1 %m.same, label %mapped.same, label %otherwise
mapped.same:
  %m.next = add i64 %m, 1
  %m.more = icmp ult i64 %m.next, %maps.count
  br i1 %m.more, label %mapped.loop, label %mapped.copy
mapped.copy:
  %maps.from.at = getelementptr %State, ptr %state, i64 0, i32 25
  %maps.from = load ptr, ptr %maps.from.at
  %maps.size.at = getelementptr %State, ptr %state, i64 0, i32 26
  %maps.size = load i64, ptr %maps.size.at
  %maps.offset.at = getelementptr %State, ptr %state, i64 0, i32 27
  %maps.offset = load i64, ptr %maps.offset.at
  %maps.to = getelementptr i8, ptr %values, i64 %maps.offset
  call void @llvm.memcpy.p0.p0.i64(ptr %maps.to, ptr %maps.from, i64 %maps.size, i1 false)
  br label %parameters
parameters:
  %parameters.count.at = getelementptr %State, ptr %state, i64 0, i32 20
  %parameters.count = load i64, ptr %parameters.count.at
  %offsets.at = getelementptr %State, ptr %state, i64 0, i32 21
  %offsets = load ptr, ptr %offsets.at
  %no.parameters = icmp eq i64 %parameters.count, 0
  br i1 %no.parameters, label %stream, label %parameter
parameter:
  %p = phi i64 [ 0, %parameters ], [ %p.next, %parameter ]
  %p.offset.at = getelementptr i64, ptr %offsets, i64 %p
  %p.offset = load i64, ptr %p.offset.at
  %p.value = getelementptr i8, ptr %values, i64 %p.offset
  %p.place = getelementptr ptr, ptr %places, i64 %p
  store ptr %p.value, ptr %p.place
  %p.next = add i64 %p, 1
  %p.more = icmp ult i64 %p.next, %parameters.count
  br i1 %p.more, label %parameter, label %stream
stream:
  store ptr null, ptr %handle
  %stream.at = getelementptr ptr, ptr %given, i64 3
  %stream.given = load ptr, ptr %stream.at
  %none.at = getelementptr %State, ptr %state, i64 0, i32 4
  %none = load ptr, ptr %none.at
  %is.none = icmp eq ptr %stream.given, %none
  br i1 %is.none, label %default, label %explicit
default:
  %torch.type.at = getelementptr %State, ptr %state, i64 0, i32 13
  %torch.type = load i32, ptr %torch.type.at
  %is.default = icmp eq i32 %torch.type, 0
  br i1 %is.default, label %configure, label %current
current:
  %torch.number.at = getelementptr %State, ptr %state, i64 0, i32 14
  %torch.number = load i32, ptr %torch.number.at
  %current.at = getelementptr %State, ptr %state, i64 0, i32 16
  %current.of = load ptr, ptr %current.at
  %current.failed = call i32 %current.of(i32 %torch.type, i32 %torch.number, ptr %handle)
  %current.works = icmp eq i32 %current.failed, 0
  br i1 %current.works, label %configure, label %otherwise
explicit:
  %int.at = getelementptr %State, ptr %state, i64 0, i32 5
  %int = load ptr, ptr %int.at
  %stream.type.at = getelementptr ptr, ptr %stream.given, i64 1
  %stream.type = load ptr, ptr %stream.type.at
  %is.int = icmp eq ptr %stream.type, %int
  br i1 %is.int, label %explicit.read, label %otherwise
explicit.read:
  %explicit.value = call i64 @PyLong_AsLongLongAndOverflow(ptr %stream.given, ptr %overflow)
  %is.handle = icmp sge i64 %explicit.value, 0  ; -1 beyond 64 bits
  %explicit.handle = inttoptr i64 %explicit.value to ptr
  store ptr %explicit.handle, ptr %handle
  br i1 %is.handle, label %configure, label %otherwise
configure:
  %own = getelementptr %State, ptr %state, i64 0, i32 19
  call void @llvm.memcpy.p0.p0.i64(ptr %configuration, ptr %own, i64 56, i1 false)
  %x.at = getelementptr i64, ptr %size, i64 0
  %x = load i64, ptr %x.at
  %x.int = trunc i64 %x to i32
  store i32 %x.int, ptr %configuration
  %y.at = getelementptr i64, ptr %size, i64 1
  %y = load i64, ptr %y.at
  %y.int = trunc i64 %y to i32
  %y.to = getelementptr i32, ptr %configuration, i64 1
  store i32 %y.int, ptr %y.to
  %z.at = getelementptr i64, ptr %size, i64 2
  %z = load i64, ptr %z.at
  %z.int = trunc i64 %z to i32
  %z.to = getelementptr i32, ptr %configuration, i64 2
  store i32 %z.int, ptr %z.to
  %stream.to = getelementptr ptr, ptr %configuration, i64 4
  %stream.handle = load ptr, ptr %handle
  store ptr %stream.handle, ptr %stream.to
  %driver.at = getelementptr %State, ptr %state, i64 0, i32 17
  %driver = load ptr, ptr %driver.at
  %function.at = getelementptr %State, ptr %state, i64 0, i32 18
  %function = load ptr, ptr %function.at
  %thread = call ptr @PyEval_SaveThread()
  %status = call i32 %driver(ptr %configuration, ptr %function, ptr %places, ptr null)
  call void @PyEval_RestoreThread(ptr %thread)
  %launched = icmp eq i32 %status, 0
  br i1 %launched, label %done, label %otherwise
done:
  call void @Py_IncRef(ptr %none)
  ret ptr %none
other:
  %not.at = getelementptr %State, ptr %state, i64 0, i32 28
  %not.implemented = load ptr, ptr %not.at
  call void @Py_IncRef(ptr %not.implemented)
  ret ptr %not.implemented
otherwise:
  call void @PyErr_Clear()
  %otherwise.at = getelementptr %State, ptr %state, i64 0, i32 2
  %callable = load ptr, ptr %otherwise.at
  %result = call ptr @PyObject_Vectorcall(ptr %callable, ptr %given, i64 %count, ptr null)
  ret ptr %result
}

; Whether three sizes are each between two others.
define internal i1 @between(ptr %sizes, ptr %least, ptr %greatest) alwaysinline {
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %fits ]
  %size.at = getelementptr i64, ptr %sizes, i64 %i
  %size = load i64, ptr %size.at
  %least.at = getelementptr i64, ptr %least, i64 %i
  %low = load i64, ptr %least.at
  %greatest.at = getelementptr i64, ptr %greatest, i64 %i
  %high = load i64, ptr %greatest.at
  %above = icmp sge i64 %size, %low
  %below = icmp sle i64 %size, %high
  %both = and i1 %above, %below
  br i1 %both, label %fits, label %no
fits:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 3
  br i1 %more, label %loop, label %yes
yes:
  ret i1 true
no:
  ret i1 false
}
