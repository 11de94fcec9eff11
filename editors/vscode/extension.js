// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Starts `tilefold lsp` for .cute files.

const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const [command, ...args] = workspace.getConfiguration("tilefold").get("command");
  client = new LanguageClient("tilefold", "tilefold", { command, args }, { documentSelector: [{ language: "cute" }] });
  return client.start();
};

exports.deactivate = () => client?.stop();
