import { test } from 'tap'
import { multiAttachMessage } from './attach-messages.ts'
import { type AttachFacts, type AttachNode, attachOutcome, attachPlan, longestUnmountMs } from './attach-plan.ts'

const idle: AttachNode = { isReady: true, isOutOfService: false, hasInUse: false }
const nodes: { readonly [name: string]: AttachNode } = {
  idle,
  idle2: idle,
  busy: { ...idle, hasInUse: true },
  away: { ...idle, hasInUse: true, isReady: false },
  dead: { ...idle, hasInUse: true, isReady: false, isOutOfService: true },
}
const nowMs = 10 * 60_000

type Given = Partial<Omit<AttachFacts, 'wanted' | 'present'>> & {
  readonly wanted?: readonly string[]
  readonly present?: readonly string[]
  readonly leaving?: readonly string[]
}

/** Each step as `kind node`. */
function steps({ wanted = [], present = [], leaving = [], ...more }: Given) {
  const plan = attachPlan({
    ...{ isShared: false, node: (name) => nodes[name], unwantedSinceMs: new Map(), nowMs, ...more },
    wanted: new Set(wanted),
    present: [
      ...present.map((node) => ({ node, isDeleting: false })),
      ...leaving.map((node) => ({ node, isDeleting: true })),
    ],
  })
  const texts = plan.steps.map((step) => {
    const more =
      step.kind === 'refuse' ? ` ${step.others.join()}` : step.kind === 'detach' && step.isForced ? ' forced' : ''
    return `${step.kind} ${step.node}${more}`
  })
  return plan.nextMs === undefined ? texts : [...texts, `next ${plan.nextMs}`]
}

test('a volume is attached where a pod uses it, and detached where none does', async (t) => {
  const rows: readonly (readonly [string, Given, readonly string[]])[] = [
    ['nothing uses it', {}, []],
    ['a pod uses it', { wanted: ['idle'] }, ['attach idle']],
    ['it is attached already', { wanted: ['idle'], present: ['idle'] }, []],
    ['its node does not exist yet', { wanted: ['none'] }, []],
    ['no pod uses it any longer', { present: ['idle'] }, ['detach idle']],
    ['it is being detached', { leaving: ['idle'] }, []],
    ['it is being detached from the node that wants it', { wanted: ['idle'], leaving: ['idle'] }, []],
    ['its node is gone', { present: ['none'] }, ['detach none']],
    ['a pod of a node that is gone uses it', { wanted: ['none'], present: ['none'] }, []],
  ]
  for (const [what, given, wanted] of rows) t.same(steps(given), wanted, what)
})

test('one node at a time has a volume, unless its access modes allow several', async (t) => {
  const rows: readonly (readonly [string, Given, readonly string[]])[] = [
    ['another node has it', { wanted: ['busy', 'idle'], present: ['busy'] }, ['refuse idle busy']],
    ['another node does not use it', { wanted: ['idle'], present: ['idle2'] }, ['detach idle2']],
    ['another node still has it mounted', { wanted: ['idle'], present: ['busy'] }, ['refuse idle busy']],
    ['it is being detached from another node', { wanted: ['idle'], leaving: ['idle2'] }, []],
    ['two nodes want it', { wanted: ['idle2', 'idle'] }, ['attach idle', 'refuse idle2 idle']],
    ['two nodes may have it', { wanted: ['idle2', 'idle'], isShared: true }, ['attach idle', 'attach idle2']],
    ['another node may have it, too', { wanted: ['idle'], present: ['busy'], isShared: true }, ['attach idle']],
  ]
  for (const [what, given, wanted] of rows) t.same(steps(given), wanted, what)
})

test('a node keeps what it has mounted, unless it is out of service, or away for six minutes', async (t) => {
  const since = (ms: number, node: string) => ({ unwantedSinceMs: new Map([[node, nowMs - ms]]) })
  const due = nowMs - 1000 + longestUnmountMs
  t.same(steps({ present: ['busy'] }), [])
  t.same(steps({ present: ['busy'], ...since(longestUnmountMs, 'busy') }), [], 'one that is ready keeps it for longer')
  t.same(steps({ present: ['away'], ...since(1000, 'away') }), [`next ${due}`])
  t.same(steps({ present: ['away'], ...since(longestUnmountMs, 'away') }), ['detach away forced'])
  t.same(steps({ present: ['dead'] }), ['detach dead forced'])
  t.same(steps({ present: ['dead'], wanted: ['dead'] }), [], 'a pod there uses it')
})

test('what happens to an attachment is reported once', async (t) => {
  const asked = { askedMs: 0, last: '' }
  const error = { time: '2026-01-01T00:00:00Z', message: 'no room' }
  const failed = { askedMs: 5, last: 'error 2026-01-01T00:00:00Z no room' }
  const attached = { askedMs: 0, last: 'attached' }
  t.same(attachOutcome(asked, { attached: false }, 5), { memory: asked, nextMs: 120_000 })
  t.same(attachOutcome(asked, { attached: true }, 5), { memory: attached, happened: 'attached' })
  t.same(attachOutcome(attached, { attached: true }, 5), { memory: attached })
  t.equal(attachOutcome(undefined, { attached: true }, 5).happened, undefined, 'another process has reported it')
  t.same(attachOutcome(asked, { attached: false, error }, 5), { memory: failed, happened: 'failed' })
  t.same(attachOutcome(failed, { attached: false, error }, 9).happened, undefined)
  t.equal(attachOutcome(failed, { attached: false, error: { ...error, time: 'later' } }, 9).happened, 'failed')
  t.match(attachOutcome(asked, { attached: false }, 120_000), { happened: 'late', nextMs: 240_000 })
  t.match(attachOutcome(undefined, { attached: false }, 7), { memory: { askedMs: 7 }, nextMs: 120_007 })
  t.equal(attachOutcome(attached, { attached: false }, 5).memory.last, '', 'it may be attached again')
})

test('the author of a pod reads which pods have the volume, and of other namespaces their number', async (t) => {
  const pod = { namespace: 'default', name: 'web' }
  const start = 'Multi-Attach error for volume "pv" Volume is already '
  const other = { namespace: 'other', name: 'secret' }
  t.equal(
    multiAttachMessage('pv', pod, []),
    `${start}exclusively attached to one node and can't be attached to another`,
  )
  t.equal(
    multiAttachMessage('pv', pod, [
      { ...pod, name: 'b' },
      { ...pod, name: 'a' },
    ]),
    `${start}used by pod(s) a, b`,
  )
  t.equal(multiAttachMessage('pv', pod, [other]), `${start}used by 1 pod(s) in different namespaces`)
  const both = `${start}used by pod(s) b and 1 pod(s) in different namespaces`
  t.equal(multiAttachMessage('pv', pod, [{ ...pod, name: 'b' }, other]), both)
})
