import { test } from 'tap'
import { nodeInMemory, podRunning } from '../testing/node-in-memory.ts'
import type { PodIsolation } from './admission/pod-isolation.ts'

/** The addresses that were observed, by pod, and whether containers may start. */
function anIsolation() {
  const known = new Map<string, string>()
  const state = { isHeld: true, isComplete: false, knownAtFirst: -1 }
  const isolation: PodIsolation = {
    observe(_, found) {
      if (found === undefined) known.clear()
      else known.set(found.path, `${found.ip} ${JSON.stringify(found.pod?.metadata.labels ?? {})}`)
    },
    observedAll() {
      if (!state.isComplete) state.knownAtFirst = known.size
      state.isComplete = true
    },
    async hold() {
      if (!state.isHeld || known.size === 0) return undefined
      return { reason: 'WaitingForNetworkPolicies', message: 'not yet', againInMs: 1_000 }
    },
  }
  return { isolation, known, state }
}

test('no container starts before the address of its pod is isolated, and the reason is shown', async (t) => {
  const { isolation, known, state } = anIsolation()
  const { clock, world, running } = nodeInMemory(t, { isolation })
  world.want(podRunning('web', undefined, { labels: { app: 'web' } }))
  await clock.advance(10_000)
  t.match([...known], [['default/web', /^10\.1\.0\.\d+ \{"app":"web"\}$/]])
  t.same(
    running().map(({ identity }) => identity.kind),
    ['sandbox'],
  )
  const waiting = { reason: 'WaitingForNetworkPolicies', message: 'not yet' }
  t.match(world.status('web'), { phase: 'Pending', containerStatuses: [{ state: { waiting } }] })
  state.isHeld = false
  await clock.advance(1_000)
  t.equal(world.status('web')?.phase, 'Running')
})

test('labels that change are observed, and a pod that is gone is not known any more', async (t) => {
  const { isolation, known, state } = anIsolation()
  state.isHeld = false
  const { clock, world } = nodeInMemory(t, { isolation })
  world.want(podRunning('web'))
  await clock.advance(1_000)
  world.want(podRunning('web', undefined, { labels: { app: 'other' } }))
  await clock.advance(1_000)
  t.match(known.get('default/web'), /"app":"other"/)
  world.want()
  await clock.advance(60_000)
  t.equal(known.size, 0)
})

test('the next agent has observed every pod that runs before it changes rules', async (t) => {
  const { isolation } = anIsolation()
  const { clock, world, start } = nodeInMemory(t, { isolation: { ...isolation, hold: async () => undefined } })
  world.want(podRunning('web'), podRunning('db'))
  await clock.advance(1_000)
  await world.stop()
  const next = anIsolation()
  start({ isolation: next.isolation })
  await clock.advance(1_000)
  t.equal(next.state.knownAtFirst, 2)
})
