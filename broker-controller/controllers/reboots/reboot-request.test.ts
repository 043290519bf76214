import { test } from 'tap'
import { aNode } from '../../../api/testing/builders.ts'
import { rebootStep, withRebootStatus } from './reboot-request.ts'

const requestedAt = '2026-01-02T03:04:05Z'
const atMs = Date.parse(requestedAt)

function asked(over: { readonly at?: string; readonly allows?: string; readonly bootID?: string } = {}) {
  const { at = requestedAt, allows = 'enabled', bootID = 'boot-1' } = over
  const node = aNode({
    name: 'pi-1',
    annotations: {
      'bramble.dev/reboot-requested-at': at,
      ...(allows !== '' && { 'bramble.dev/remote-reboot': allows }),
    },
  })
  return booted(node, bootID)
}

function booted<N extends ReturnType<typeof aNode>>(node: N, bootID: string): N {
  const nodeInfo = { ...node.status?.nodeInfo, bootID }
  return { ...node, status: { ...node.status, nodeInfo } } as N
}

const pending = { requestedAt, state: 'Pending', bootID: 'boot-1' } as const
const waiting = withRebootStatus(asked(), pending)

test('a new request is bound to the boot that the node reported', async (t) => {
  t.match(rebootStep(asked(), atMs), {
    step: 'write',
    status: pending,
    event: { type: 'Normal', reason: 'RebootRequested', message: /pi-1 .*2026-01-02T03:04:05Z/ },
  })
  t.same(rebootStep(aNode({ name: 'pi-1' }), atMs), { step: 'none' })
})

test('a request is refused with the reason: too old, from the future, switched off, or of an unknown boot', async (t) => {
  const cases = [
    { node: asked(), nowMs: atMs + 301_000, because: /5 minutes old/ },
    { node: asked(), nowMs: atMs - 301_000, because: /future/ },
    { node: asked({ allows: '' }), nowMs: atMs, because: /enableRemoteReboot/ },
    { node: asked({ allows: 'disabled' }), nowMs: atMs, because: /enableRemoteReboot/ },
    { node: asked({ bootID: '' }), nowMs: atMs, because: /boot ID/ },
    { node: asked({ at: 'now' }), nowMs: atMs, because: /RFC 3339/ },
  ]
  for (const { node, nowMs, because } of cases) {
    const step = rebootStep(node, nowMs)
    t.match(step, {
      step: 'write',
      status: { state: 'Refused', bootID: undefined },
      event: { type: 'Warning', reason: 'RebootRefused', message: because },
    })
    if (step.step === 'write') {
      t.same(rebootStep(withRebootStatus(node, step.status), nowMs), { step: 'none' }, 'recorded once')
    }
  }
})

test('a request is completed by another boot, however late it is reported, and never begins again', async (t) => {
  for (const nowMs of [0, atMs, atMs + 86_400_000]) {
    const step = rebootStep(booted(waiting, 'boot-2'), nowMs)
    t.match(step, { step: 'write', status: { ...pending, state: 'Completed' }, event: { reason: 'RebootCompleted' } })
    if (step.step !== 'write') return
    const after = withRebootStatus(booted(waiting, 'boot-2'), step.status)
    t.same(rebootStep(after, atMs), { step: 'none' })
    t.same(rebootStep(booted(after, 'boot-3'), atMs), { step: 'none' })
  }
})

test('a request that no reboot follows expires, also where the clock was set back', async (t) => {
  t.same(rebootStep(waiting, atMs + 1_000), { step: 'wait', untilMs: atMs + 300_001 })
  for (const nowMs of [atMs + 300_001, atMs - 300_001]) {
    t.match(rebootStep(waiting, nowMs), {
      step: 'write',
      status: { ...pending, state: 'Expired' },
      event: { type: 'Warning', reason: 'RebootExpired', message: /not reported another boot within 5 minutes/ },
    })
  }
  t.match(rebootStep(booted(waiting, ''), atMs), { step: 'wait' }, 'a node without a boot ID has not rebooted')
})

test('a store from a backup restarts no machine again', async (t) => {
  const later = atMs + 3600_000
  t.match(rebootStep(asked(), later), { status: { state: 'Refused' } }, 'a backup from before the request was seen')
  t.match(rebootStep(waiting, later), { status: { state: 'Expired' } }, 'from before the reboot')
})

test('the text of an annotation may be as long as Kubernetes allows, its answer is short', async (t) => {
  const step = rebootStep(asked({ at: 'x'.repeat(200_000) }), atMs)
  t.match(step, { step: 'write', status: { state: 'Refused' } })
  t.ok(JSON.stringify(step).length < 1_000)
})
