import { test } from 'tap'
import type { FleetUpdate } from '../../api/dashboard/dashboard-messages.ts'
import { aNode, aPod } from '../../api/testing/builders.ts'
import { memoryStore } from '../../broker-controller/store/memory-store.ts'
import type { Store } from '../../broker-controller/store/store.ts'
import { usageBoard } from '../../broker-controller/usage/usage-board.ts'
import { openLog } from '../../daemon/log.ts'
import { type FakeClock, fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { dashboardFleet } from './dashboard-fleet.ts'

/** A fleet whose rights the test decides, and the first page of it. */
function anOpenPage(t: Parameters<typeof quietLog>[0], store: Store, clock: FakeClock) {
  let mayList = true
  const usage = usageBoard({ clock })
  const fleet = dashboardFleet({
    store,
    clock,
    log: quietLog(t),
    usage,
    commonNameOf: () => undefined,
    alwaysSample: false,
    access: {
      decide: async () => ({ allowed: mayList, reason: '' }),
      revision: () => 0,
      rulesOf: () => [],
      rulesOfRole: () => undefined,
    },
  })
  const stopping = new AbortController()
  const running = fleet.run(stopping.signal)
  const leaving = new AbortController()
  const stream = fleet.stream(async () => ({ user: 'jane', groups: [] }), leaving.signal)[Symbol.asyncIterator]()
  return {
    usage,
    next: async (): Promise<FleetUpdate> => {
      for (;;) {
        const text = Buffer.from((await stream.next()).value ?? []).toString()
        if (text.startsWith('data: ')) return JSON.parse(text.slice(6)) as FleetUpdate
      }
    },
    forbid: () => {
      mayList = false
    },
    end: async () => {
      stopping.abort()
      await running
      return (await stream.next()).done
    },
  }
}

test('a page that reads slowly receives only cards that it may see when it reads them', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  for (let i = 0; i < 600; i++) await store.create('pods', aPod({ name: `web-${i}` }))
  const { next, forbid, end } = anOpenPage(t, store, clock)
  t.match(await next(), { reset: { pods: true } })
  t.equal((await next()).pods?.put?.length, 250)
  forbid()
  await clock.advance(10_000)
  t.match(await next(), { reset: { pods: false } })
  t.match(await next(), { complete: true })
  t.equal(await end(), true)
})

test('what machines use is sent soon after the first page was opened', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const { status, ...node } = aNode({ name: 'pi-1', ready: 'True' })
  await store.create('nodes', { ...node, status: { ...status, capacity: { cpu: '1', memory: '1Gi' } } })
  const { next, usage, end } = anOpenPage(t, store, clock)
  while ((await next()).complete !== true);
  await clock.advance(1_000)
  const time = '2026-01-01T00:00:00Z'
  const cpu = { time, usageNanoCores: 5e8 }
  usage.receive('pi-1', { time, summary: { node: { nodeName: 'pi-1', startTime: time, cpu }, pods: [] } })
  await clock.advance(2_000)
  t.match(await next(), { usage: { 'pi-1': [50] } })
  t.equal(await end(), true)
})

test('a store that does not answer once does not end the sampling', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  let asked = 0
  const list: Store['list'] = async (...of) => {
    if (asked++ === 0) throw new Error('it is away')
    return store.list(...of)
  }
  const lines: string[] = []
  const fleet = dashboardFleet({
    store: { ...store, list },
    clock,
    log: openLog({ level: 'warn', format: 'text', write: (line) => lines.push(line) }),
    usage: usageBoard({ clock }),
    commonNameOf: () => undefined,
    alwaysSample: true,
    access: {
      decide: async () => ({ allowed: true, reason: '' }),
      rulesOf: () => [],
      rulesOfRole: () => undefined,
      revision: () => 0,
    },
  })
  const stopping = new AbortController()
  const running = fleet.run(stopping.signal)
  await clock.advance(60_000)
  stopping.abort()
  await running
  t.equal(asked, 2)
  t.match(lines, [/Use of machines not sampled.*it is away/])
})
