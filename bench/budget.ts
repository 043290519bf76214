/**
 * Checks that no request or message holds the event loop for more than 100 ms. Sends the largest objects that the limits allow,
 * for each list and map of each kind, with each verb, and prints the slowest ones: the least CPU time of some runs, from the
 * body's bytes to the answer, with a store in memory. Exits with 1 when one took more than 100 ms. Arguments: the values in a
 * body, and a part of the names of the cases to run.
 */
import { type Identity, mastersGroup } from '../api/identity.ts'
import { openAuthorizer } from '../broker-controller/apiserver/access/authorizer.ts'
import { serviceNetwork } from '../broker-controller/apiserver/handlers/service-network.ts'
import type { KindStrategy } from '../broker-controller/apiserver/handlers/strategy.ts'
import { answerRequest } from '../broker-controller/apiserver/requests.ts'
import { mostValues } from '../broker-controller/apiserver/wire/body-limits.ts'
import { parseYamlBody } from '../broker-controller/apiserver/wire/yaml-body.ts'
import { builtInKinds } from '../broker-controller/control-plane.ts'
import { eventRecorder } from '../broker-controller/store/event-recorder.ts'
import { memoryStore } from '../broker-controller/store/memory-store.ts'
import { type LargeObject, largeObjects } from '../broker-controller/testing/largest-objects.ts'
import { usageBoard } from '../broker-controller/usage/usage-board.ts'
import { commonNameOfCSR } from '../certs/csr-check.ts'
import { openLog } from '../daemon/log.ts'
import { fakeClock } from '../daemon/testing/fake-clock.ts'

const budgetMs = 100
const runs = 3
const administrator: Identity = { user: 'admin', groups: [mastersGroup] }
const [valuesText, only = ''] = process.argv.slice(2)
const values = Number(valuesText ?? mostValues)
const mostBytes = 3 * 2 ** 20
const clock = fakeClock()
type Row = { readonly what: string; readonly bytes: number; readonly code: number; readonly ms: number }
const rows: Row[] = []

for (const kind of builtInKinds.all) for (const large of largeObjects(kind)) await measureAll(kind, large)
const slow = rows.filter(({ ms }) => ms > budgetMs)
console.log('The longest:')
for (const row of rows.toSorted((a, b) => b.ms - a.ms).slice(0, 30)) print(row)
console.log(`${rows.length} requests, ${slow.length} above ${budgetMs} ms`)
process.exitCode = slow.length > 0 ? 1 : 0

async function measureAll(kind: KindStrategy, { field, object }: LargeObject): Promise<void> {
  const what = `${kind.name} ${field}`
  // Init and ephemeral containers have the fields of containers.
  if (!what.includes(only) || /(init|ephemeral)Containers\[\]/.test(what)) return
  const hundred = JSON.stringify(object(100, 'a'))
  const most = Math.floor((values * 100) / (hundred.match(/[,[{]/g) ?? []).length) - 50
  const bytesEach = hundred.length / 95
  const items = Math.max(1, Math.min(most, Math.floor(mostBytes / bytesEach) - 10))
  const send = await anApi()
  const small = JSON.stringify(object(1, 'a'))
  const [first, second] = [JSON.stringify(object(items, 'a')), JSON.stringify(object(items, 'b'))]
  const base = `${pathOf(kind)}`
  const again = `${base}/large`
  const fresh = async () => {
    await send('DELETE', again, 'json', '{"gracePeriodSeconds":0}')
    await send('POST', base, 'json', small)
  }
  await measure(
    `${what} POST`,
    () => send('DELETE', again, 'json', '{"gracePeriodSeconds":0}'),
    () => send('POST', base, 'json', first),
    first,
  )
  await measure(`${what} PUT`, fresh, () => send('PUT', again, 'json', first), first)
  await fresh()
  await send('PUT', again, 'json', first)
  await measure(
    `${what} PUT over large`,
    async () => 0,
    () => send('PUT', again, 'json', second),
    second,
  )
  await measure(
    `${what} merge`,
    async () => 0,
    () => send('PATCH', again, 'merge-patch+json', second),
    second,
  )
  await measure(
    `${what} strategic`,
    async () => 0,
    () => send('PATCH', again, 'strategic-merge-patch+json', second),
    second,
  )
  if ('status' in kind.subresources) {
    await measure(
      `${what} PUT status`,
      async () => 0,
      () => send('PUT', `${again}/status`, 'json', second),
      second,
    )
  }
}

async function measure(
  what: string,
  before: () => Promise<unknown>,
  act: () => Promise<number>,
  body: string,
): Promise<void> {
  const costs: number[] = []
  let code = 0
  for (let run = 0; run < runs && (costs[0] ?? 0) < 1_000; run++) {
    await before()
    const start = process.cpuUsage()
    code = await act()
    const { user, system } = process.cpuUsage(start)
    costs.push((user + system) / 1000)
    if (Math.min(...costs) < budgetMs / 2) break
  }
  const row = { what, bytes: body.length, code, ms: Math.min(...costs) }
  rows.push(row)
  if (row.ms > budgetMs) print(row)
}

function print({ what, bytes, code, ms }: Row): void {
  console.log(`${ms.toFixed(0).padStart(6)} ms ${String(bytes).padStart(8)} B  ${code}  ${what}`)
}

function pathOf({ group, version, name, namespaced }: KindStrategy): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  return namespaced ? `${root}/namespaces/default/${name}` : `${root}/${name}`
}

async function anApi() {
  const store = memoryStore({ clock })
  await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } })
  const log = openLog({ level: 'error', format: 'text', write: (line) => process.stderr.write(line.slice(0, 2000)) })
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
  return async (method: string, path: string, type: string, text: string): Promise<number> => {
    const body = Buffer.from(text)
    const { answer } = await answerRequest(
      {
        method,
        path,
        query: new URLSearchParams(),
        certificate: {
          trusted: true,
          identity: administrator,
          validSinceMs: 0,
          validUntilMs: Number.POSITIVE_INFINITY,
        },
        headers: { 'content-type': `application/${type}` },
        readBody: async () => body,
        signal: new AbortController().signal,
      },
      needs,
    )
    if (answer.kind !== 'object') return 200
    JSON.stringify(answer.body)
    return answer.code
  }
}
