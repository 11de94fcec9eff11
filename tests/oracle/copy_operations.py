COPY = {}
