import { type Test, test } from 'tap'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { LocalPods } from '../policies/pod-isolation.ts'
import type { LocalPod } from '../policies/policy-rules.ts'
import { portGuardManager } from './port-guard-manager.ts'

const noPods: LocalPods = { pods: new Map(), isComplete: true }

function aPod(number: number, more: Partial<LocalPod> = {}): LocalPod {
  const mac = `02:42:0a:f4:01:0${number}`
  const sandbox = { id: `s${number}`, pid: number, mac }
  const named = { namespace: 'default', name: `p${number}`, labels: undefined, ports: [], isStatic: false }
  return { ...named, ip: `10.244.1.${number}`, sandbox, ...more }
}

const { sandbox: _, ...withoutSandbox } = aPod(5)

function podsOf(...pods: readonly LocalPod[]): LocalPods {
  return { pods: new Map(pods.map((one) => [one.name, one])), isComplete: true }
}

/** A machine whose pods are at the ports pod1, pod2 and so on of one bridge. */
async function running(t: Test, first: LocalPods) {
  const clock = fakeClock()
  const log = quietLog(t)
  const localPods = cell(first)
  const world = {
    calls: [] as string[],
    table: '',
    problem: undefined as string | undefined,
    isThere: true,
    looked: 0,
    places: new Map([1, 2, 3].map((number) => [`s${number}`, `pod${number}`])),
  }
  const act = async (call: string) => {
    if (world.problem !== undefined) throw new Error(world.problem)
    world.calls.push(call)
  }
  const loop = portGuardManager(
    {
      ports: {
        async placeOf({ id }) {
          world.looked++
          const port = world.places.get(id)
          return port === undefined ? undefined : { port, bridge: 'br-1' }
        },
        addressesOf: (bridge) => (bridge === 'br-1' ? ['10.244.1.1'] : []),
      },
      table: {
        async apply(transaction) {
          await act('apply')
          world.table = transaction
        },
        isIntact: async () => world.isThere,
        remove: () => act('remove'),
        removeUnused: () => act('removeUnused'),
      },
      reads: { localPods },
      clock,
      log,
    },
    'pi-1',
  )
  const end = new AbortController()
  const done = loop.run(end.signal)
  t.teardown(async () => {
    end.abort()
    await done
  })
  await clock.settle()
  const set = async (pods: LocalPods) => {
    localPods.set(pods)
    await clock.settle()
  }
  return { world, clock, set, log }
}

test('each pod at a bridge may send with its own addresses', async (t) => {
  const { world, set } = await running(t, { pods: new Map(), isComplete: false })
  t.same(world.calls, [], 'until all pods are known, the table of an earlier agent stays')
  await set(podsOf(aPod(3), aPod(2, { ipv6: 'fd00:10:244:1::1' }), aPod(4), withoutSandbox))
  t.same(world.calls, ['removeUnused', 'apply'])
  t.match(world.table, /^table bridge bramble-pi-1 \{$/m)
  t.match(world.table, 'elements = { "pod2", "pod3" }', 'a pod that is at no bridge has no rules')
  t.match(world.table, '"pod3" . 02:42:0a:f4:01:03 . 10.244.1.3')
  t.match(world.table, '"pod2" . 02:42:0a:f4:01:02 . fd00:10:244:1::1')
  t.match(world.table, '"pod2" . 02:42:0a:f4:01:02 . fe80::42:aff:fef4:102', 'the address of its link')
  t.match(world.table, '"pod2" . 0xfd000010024400010000000000000001')
  t.match(
    world.table,
    'elements = { 10.244.1.2, 10.244.1.3, 10.244.1.1 }',
    'which no other port has, and the address of the node is one',
  )
})

test('what the kernel has already is not applied again, and a place is looked for once', async (t) => {
  const { world, clock, set } = await running(t, podsOf(aPod(1)))
  t.same([world.calls, world.looked], [['removeUnused', 'apply'], 1])
  await set(podsOf(aPod(1, { labels: { app: 'web' } })))
  await clock.advance(60 * 60_000)
  t.same([world.calls, world.looked], [['removeUnused', 'apply'], 1])
  await set(podsOf(aPod(1), aPod(2)))
  t.same([world.calls.length, world.looked], [3, 2])
  world.places.set('s2', 'pod2-again')
  await set(podsOf(aPod(1), aPod(2, { sandbox: { id: 's2', pid: 99, mac: '02:42:0a:f4:01:02' } })))
  t.match(world.table, '"pod2-again"', 'a sandbox that was started again has another port')
  await set(noPods)
  t.equal(world.calls.at(-1), 'remove')
  await clock.advance(60 * 60_000)
  t.equal(world.calls.length, 5)
})

test('a table that another program removed is applied again', async (t) => {
  const { world, clock, log } = await running(t, podsOf(aPod(1)))
  world.isThere = false
  await clock.advance(5 * 60_000)
  t.same(world.calls, ['removeUnused', 'apply', 'apply'])
  t.match(log.messages('warn'), [/were removed by another program/])
})

test('a kernel without such rules is logged once, and tried again seldom', async (t) => {
  const { world, clock, log, set } = await running(t, noPods)
  world.problem = 'Operation not supported'
  await set(podsOf(aPod(1)))
  await clock.advance(60 * 60_000)
  await set(podsOf(aPod(1), aPod(2)))
  t.equal(log.messages('warn').length, 1)
  world.problem = undefined
  await clock.advance(10 * 60_000)
  t.equal(world.calls.at(-1), 'apply', 'nft may have been installed')
})

test('a port that two pods claim is neither’s', async (t) => {
  const { world, set } = await running(t, noPods)
  world.places.set('s2', 'pod1')
  await set(podsOf(aPod(1), aPod(2), aPod(3)))
  t.match(world.table, 'elements = { "pod3" }')
})
