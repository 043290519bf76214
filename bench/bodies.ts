/** Measures the event loop time of one hostile body. `--help` prints the usage. */
import { type Identity, mastersGroup } from '../api/identity.ts'
import { openAuthorizer } from '../broker-controller/apiserver/authorization/authorizer.ts'
import { answerRequest } from '../broker-controller/apiserver/filters/answer-request.ts'
import { serviceNetwork } from '../broker-controller/apiserver/handlers/service-network.ts'
import { parseYamlBody } from '../broker-controller/apiserver/wire/yaml-body.ts'
import { builtInKinds } from '../broker-controller/assembly/control-plane.ts'
import { eventRecorder } from '../broker-controller/store/event-recorder.ts'
import { memoryStore } from '../broker-controller/store/memory-store.ts'
import { usageBoard } from '../broker-controller/usage/usage-board.ts'
import { commonNameOfCSR } from '../certs/csr-check.ts'
import { openLog } from '../daemon/log.ts'
import { fakeClock } from '../daemon/testing/fake-clock.ts'
import { slowness } from '../daemon/testing/turn-budget.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

const runs = 3
const { keys } = benchmarkOptions({
  name: 'node dist/bench/bodies.js',
  text: `Sends patches with many keys and YAML of several sizes through a whole request (authentication to store, all in memory), and prints how
long each body holds the event loop: the least CPU time of ${runs} runs.`,
  options: {
    keys: {
      value: 'N',
      help: 'keys of the patches',
      range: [1, 1_000_000],
      repeated: true,
      default: ['2000', '5000'],
    },
  },
})
const enoughMs = 2_000 // what takes as long is not run again
const administrator: Identity = { user: 'admin', groups: [mastersGroup] }
const clock = fakeClock()
const store = memoryStore({ clock })
const log = openLog({ level: 'error', format: 'text', write: (line) => process.stderr.write(line) })
const needs = {
  store,
  events: eventRecorder({ store, clock }),
  usage: usageBoard({ clock }),
  clock,
  log,
  random: Math.random,
  parseYaml: parseYamlBody,
  services: serviceNetwork(),
  commonNameOf: commonNameOfCSR,
  version: '0',
  kinds: builtInKinds,
  access: await openAuthorizer({ store, clock, log }),
  metrics: async () => ({ text: '', contentType: 'text/plain' }),
  readiness: [],
}
const map = '/api/v1/namespaces/default/configmaps/big'
const yamlHead = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\n'
const head = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'big' } }

await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } })
console.log(`This machine takes ${slowness().toFixed(1)} times as long as an idle x86-64 core of 2 GHz.`)
for (const count of keys) {
  const data = Object.fromEntries(Array.from({ length: count }, (_, key) => [`k${key}`, 'v']))
  const adding = Object.keys(data).map((key) => ({ op: 'add', path: `/data/${key}`, value: 'v' }))
  await show('merge patch', count, 'merge-patch', JSON.stringify({ data }))
  await show('strategic merge patch', count, 'strategic-merge-patch', JSON.stringify({ data }))
  await show('JSON patch', count, 'json-patch', JSON.stringify(adding))
  await show('server-side apply', count, 'apply-patch', JSON.stringify({ ...head, data }))
}
for (const kilobytes of [15, 155, 2_000]) {
  const lines: string[] = []
  for (let key = 0, bytes = 0; bytes < kilobytes * 1000; key++)
    bytes += `  k${lines.push(`  k${key}: v`)}: v`.length + 1
  await show('YAML, keys', kilobytes, 'yaml', `${yamlHead}data:\n${lines.join('\n')}\n`)
  await show('YAML, flow list', kilobytes, 'yaml', `${yamlHead}data: [${'1,'.repeat(kilobytes * 500)}1]\n`)
}

async function show(what: string, size: number, type: string, text: string): Promise<void> {
  const body = Buffer.from(text)
  const costs: number[] = []
  let code = 0
  for (let run = 0; run < runs && (costs[0] ?? 0) < enoughMs; run++) {
    await store.delete('configmaps', { namespace: 'default', name: 'big' }).catch(() => undefined)
    await send(
      'POST',
      '/api/v1/namespaces/default/configmaps',
      'json',
      Buffer.from(JSON.stringify({ ...head, data: {} })),
    )
    const before = process.cpuUsage()
    code = await sendAs(type, body)
    const { user, system } = process.cpuUsage(before)
    costs.push((user + system) / 1000)
  }
  const unit = type === 'yaml' ? 'kB' : 'keys'
  const cost = Math.min(...costs).toFixed(1)
  console.log(
    `${what.padEnd(24)} ${`${size} ${unit}`.padStart(12)} ${`${body.length} B`.padStart(12)} ${cost.padStart(10)} ms  HTTP ${code}`,
  )
}

function sendAs(type: string, body: Buffer): Promise<number> {
  if (type === 'yaml') return send('PUT', map, type, body)
  return send('PATCH', map, type === 'apply-patch' ? `${type}+yaml` : `${type}+json`, body)
}

async function send(method: string, path: string, type: string, body: Buffer): Promise<number> {
  const { answer } = await answerRequest(
    {
      method,
      path,
      query: new URLSearchParams(type.startsWith('apply-patch') ? 'fieldManager=bench&force=true' : ''),
      certificate: { trusted: true, identity: administrator, validSinceMs: 0, validUntilMs: Infinity },
      headers: { 'content-type': `application/${type}` },
      readBody: async () => body,
      signal: new AbortController().signal,
    },
    needs,
  )
  return 'code' in answer ? answer.code : 200
}
