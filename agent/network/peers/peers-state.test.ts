import { test } from 'tap'
import { newPeersState, nextPass, onDoubt, onGivenUp, onNetwork, type PeersState } from './peers-state.ts'

const routed = { mode: 'routed' } as const
const received = (over = {}) => ({ isOn: true, form: routed, delayMs: 500, nowMs: 1_000, ...over })
const facts = (over = {}) => ({
  nowMs: 1_000,
  isIdle: false,
  hasBridgeFailed: false,
  hasFirewallFailed: false,
  ...over,
})
/** Nothing is due. */
const settled: PeersState = {
  ...onNetwork(newPeersState, received()),
  verifyAtMs: 30_000,
  firewallAtMs: 120_000,
  isBridgeDue: false,
}

test('pods move at once when the agent starts, and after the delay of their node when the network changes', async (t) => {
  const started = onNetwork(newPeersState, received())
  t.match(started, { isOn: true, mayMove: true, moveAtMs: 1_000 })
  const changed = onNetwork(settled, received({ form: { mode: 'node' }, nowMs: 2_000 }))
  t.match(changed, { mayMove: false, moveAtMs: 2_500 })
  t.match(nextPass(changed, facts({ nowMs: 2_499 })), { movesNow: false })
  t.match(nextPass(changed, facts({ nowMs: 2_500 })), { movesNow: true, isDue: true, adjustsBridge: true })
  const same = onNetwork(settled, received({ nowMs: 9_000 }))
  t.match(same, { mayMove: true, moveAtMs: 1_000 }, 'the same form again moves nothing')
})

test('without a message pods stay where they are until the controller is known to have no network', async (t) => {
  const without = onNetwork(newPeersState, received({ isOn: false, form: { mode: 'node' } }))
  t.match(without, { isOn: false, mayMove: false, isStarting: false })
  t.same(nextPass(without, facts({ isIdle: true })), { pass: 'idle', adjustsBridge: false })
  const givenUp = onGivenUp(without)
  t.equal(givenUp.mayMove, true)
  t.same(nextPass(givenUp, facts({ isIdle: true })), { pass: 'idle', adjustsBridge: true })
  t.match(onNetwork(settled, received({ isOn: false })), { mayMove: true }, 'a network that ends lets its pods go')
})

test('routes are looked at in each pass; rules and the bridge when they are due', async (t) => {
  const rest = { pass: 'network', movesNow: false, isDue: false, isFirewallDue: false, adjustsBridge: false } as const
  t.same(nextPass(settled, facts()), rest)
  t.same(nextPass(settled, facts({ nowMs: 30_000 })), { ...rest, isDue: true })
  t.match(nextPass(settled, facts({ nowMs: 30_000, hasFirewallFailed: true })), { isFirewallDue: true })
  t.same(nextPass(settled, facts({ nowMs: 120_000 })), { ...rest, isDue: true, isFirewallDue: true })
  t.same(nextPass(settled, facts({ hasBridgeFailed: true })), rest, 'a failure waits for the next look')
  t.same(nextPass(settled, facts({ nowMs: 30_000, hasBridgeFailed: true })), {
    ...rest,
    ...{ isDue: true, adjustsBridge: true },
  })
  t.same(nextPass(onDoubt(settled), facts()), {
    ...rest,
    ...{ isDue: true, isFirewallDue: true, adjustsBridge: true },
  })
})

test('a network that has ended is taken down while its routes are there', async (t) => {
  const ended = { ...settled, isOn: false }
  t.match(nextPass(ended, facts()), { pass: 'network' })
  t.match(nextPass(ended, facts({ isIdle: true })), { pass: 'idle' })
})
