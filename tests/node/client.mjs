// The official TypeScript client, driven once through what an agent does; what it saw is printed as JSON.
//
//   node client.mjs PROJECT http URL
//   node client.mjs PROJECT stdio COMMAND [ARGUMENT...]

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [project, kind, target, ...rest] = process.argv.slice(2);
const transport =
  kind === 'http'
    ? new StreamableHTTPClientTransport(new URL(target))
    : new StdioClientTransport({ command: target, args: rest, env: process.env });

const client = new Client({ name: 'contextd-test', version: '1.0.0' });
await client.connect(transport);

// The client holds each answer against the tool's output schema, once it has listed the tools.
const { tools } = await client.listTools();
const call = async (name, args, options) => {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
  return { isError: result.isError ?? false, ...result.structuredContent };
};
const refusal = async (promise) => promise.then(() => null, (error) => ({ code: error.code, message: error.message }));

const progress = [];
const saved = await call('checkpoint_save', { summary: 'Saved from Node', project_path: project });
const seen = {
  server: client.getServerVersion(),
  tools: tools.map((tool) => tool.name),
  saved,
  found: await call('checkpoint_search', { query: 'saved from node', project_path: project }),
  restored: await call('checkpoint_restore', { id: saved.id }),
  progressed: await call('reports', {}, { onprogress: (told) => progress.push(told.message) }),
  progress,
  failed: await call('checkpoint_restore', { id: 'cp_unknown' }),
  unknownTool: await refusal(client.callTool({ name: 'no_such_tool', arguments: {} })),
  resources: (await client.listResources()).resources.map((resource) => resource.uri),
  page: (await client.readResource({ uri: 'contextd://tools/status' })).contents[0].text,
  missing: await refusal(client.readResource({ uri: 'contextd://checkpoints/cp_unknown' })),
  prompts: (await client.listPrompts()).prompts.map((prompt) => prompt.name),
  prompt: (await client.getPrompt({ name: 'resume-work', arguments: { project_path: project } })).messages,
};
if (transport.terminateSession) await transport.terminateSession();
await client.close();
console.log(JSON.stringify(seen));
