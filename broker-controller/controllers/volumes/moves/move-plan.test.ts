import { test } from 'tap'
import type { CopyResult } from '../../../../api/storage/volume-messages.ts'
import { seededRandom } from '../../../../daemon/testing/seeded-random.ts'
import { type MoveFacts, type MovePhase, planMove, type SourceReport, type TargetReport } from './move-plan.ts'

const id = 'm-1'
const result = (round: number, digest = 'd'): CopyResult => ({ round, files: 1, bytes: 1, digest })
const source = (over: Partial<SourceReport> = {}): SourceReport => ({
  id,
  isFenced: false,
  isReleased: false,
  isDiscarded: false,
  ...over,
})
const target = (over: Partial<TargetReport> = {}): TargetReport => ({
  id,
  isPlaced: false,
  isRemoved: false,
  ...over,
})
const plan = (phase: MovePhase, round: number, facts: Partial<MoveFacts> = {}) =>
  planMove({ move: { id, phase, round }, isCancelled: false, source: undefined, target: undefined, ...facts })

test('each phase follows when the nodes have reported the one before', async (t) => {
  t.same(plan('copy', 1), { step: 'wait' })
  t.same(plan('copy', 2, { target: target({ received: result(1) }) }), { step: 'wait' }, 'another round')
  t.same(plan('copy', 1, { target: target({ received: result(1) }) }), { step: 'enter', phase: 'hold', round: 1 })
  t.same(plan('hold', 1), { step: 'wait' })
  t.same(plan('hold', 1, { source: source() }), { step: 'wait' })
  t.same(plan('hold', 1, { source: source({ isFenced: true }) }), { step: 'enter', phase: 'delta', round: 2 })
  const fenced = source({ isFenced: true, sent: result(2) })
  t.same(plan('delta', 2, { target: target({ received: result(2) }) }), { step: 'wait' })
  t.same(plan('delta', 2, { source: fenced }), { step: 'wait' })
  t.same(plan('delta', 2, { source: fenced, target: target({ received: result(1) }) }), { step: 'wait' })
  const older = source({ isFenced: true, sent: result(1) })
  t.same(plan('delta', 2, { source: older, target: target({ received: result(2) }) }), { step: 'wait' })
  t.same(plan('delta', 2, { source: fenced, target: target({ received: result(2) }) }), { step: 'rewrite' })
  t.same(plan('place', 2), { step: 'wait' })
  t.same(plan('place', 2, { target: target() }), { step: 'wait' })
  t.same(plan('place', 2, { target: target({ isPlaced: true }) }), { step: 'enter', phase: 'clean', round: 2 })
  t.same(plan('clean', 2), { step: 'wait' })
  t.same(plan('clean', 2, { source: source() }), { step: 'wait' })
  t.same(plan('clean', 2, { source: source({ isDiscarded: true }) }), { step: 'end', isMoved: true })
})

test('reports about another move do not count', async (t) => {
  const all = { isFenced: true, isReleased: true, isDiscarded: true, isPlaced: true, isRemoved: true }
  const copies = { sent: result(1), received: result(1), refusal: 'no space' }
  const other = { ...all, ...copies, id: 'm-0' }
  for (const phase of ['copy', 'hold', 'delta', 'place', 'clean', 'rollback'] as const)
    t.same(plan(phase, 1, { source: other, target: other }), { step: 'wait' }, phase)
})

test('a copy that differs is made again, and in the end rolled back', async (t) => {
  const facts = (round: number, over: Partial<CopyResult>) => ({
    source: source({ isFenced: true, sent: result(round) }),
    target: target({ received: { ...result(round), ...over } }),
  })
  for (const over of [{ digest: 'other' }, { files: 2 }, { bytes: 2 }]) {
    t.same(plan('delta', 2, facts(2, over)), { step: 'enter', phase: 'delta', round: 3 })
    t.same(plan('delta', 3, facts(3, over)), { step: 'enter', phase: 'delta', round: 4 })
    t.match(plan('delta', 4, facts(4, over)), { phase: 'rollback', why: 'the copy differs from the data', round: 4 })
  }
})

test('without its fence the source is held again, at most as often as it is copied', async (t) => {
  const open = { source: source({ sent: result(2) }), target: target({ received: result(2) }) }
  t.same(plan('delta', 2, open), { step: 'enter', phase: 'hold', round: 2 })
  t.match(plan('delta', 4, { source: source() }), { phase: 'rollback', why: 'the copy differs from the data' })
})

test('it is rolled back before the volume is rewritten only, and both nodes have to confirm it', async (t) => {
  for (const phase of ['copy', 'hold', 'delta'] as const) {
    const back = { step: 'enter', phase: 'rollback', round: 1 }
    t.same(plan(phase, 1, { isCancelled: true }), { ...back, why: 'it was cancelled' })
    t.same(plan(phase, 1, { target: target({ refusal: 'no space' }) }), { ...back, why: 'no space' })
  }
  for (const phase of ['place', 'clean'] as const) {
    t.same(plan(phase, 2, { isCancelled: true }), { step: 'wait' })
    t.same(plan(phase, 2, { target: target({ refusal: 'no space' }) }), { step: 'wait' })
  }
  const [removed, released] = [target({ isRemoved: true }), source({ isReleased: true })]
  t.same(plan('rollback', 1), { step: 'wait' })
  t.same(plan('rollback', 1, { source: released, target: target() }), { step: 'wait' })
  t.same(plan('rollback', 1, { source: source(), target: removed }), { step: 'wait' })
  t.same(plan('rollback', 1, { source: released, target: removed }), { step: 'end', isMoved: false })
})

/** A fleet with one volume, whose pod writes while it runs. What is in `disk` outlives a kill; reports do not. */
function world(random: () => number) {
  let made = 0
  let volume: { place: 'source' | 'target'; move?: { id: string; phase: MovePhase; round: number } } = {
    place: 'source',
  }
  const disk = {
    source: { data: [] as number[] | undefined, fence: '', sent: undefined as CopyResult | undefined, discarded: '' },
    target: {
      data: undefined as number[] | undefined,
      incoming: undefined as number[] | undefined,
      received: undefined as CopyResult | undefined,
      removed: '',
    },
  }
  /** What the controller holds in memory. */
  let reports: { source?: SourceReport; target?: TargetReport } = {}
  let pod: 'source' | 'target' | undefined
  let isCancelled = false
  let written = 0
  const ends: boolean[] = []
  const { source: from, target: to } = disk
  const copied = (round: number, data: readonly number[]): CopyResult => ({
    ...result(round, data.join()),
    files: data.length,
  })

  const steps = {
    write() {
      if (pod === undefined) return
      const data = pod === 'source' ? from.data : to.data
      if (data === undefined) throw new Error('a pod runs without its data')
      data.push(++written)
    },
    startPod() {
      // A pod with a nodeName needs no scheduler: its node decides by its own disk.
      if (pod !== undefined) return
      if (volume.place === 'source' && from.fence === '') pod = 'source'
      if (volume.place === 'target' && to.data !== undefined) pod = 'target'
    },
    stopPod() {
      pod = undefined
    },
    sourceNode() {
      const { move } = volume
      if (move?.phase === 'hold' || move?.phase === 'delta') {
        // What was sent before may have changed since.
        if (pod !== 'source' && from.fence !== move.id) [from.fence, from.sent] = [move.id, undefined]
      } else if (move?.phase === 'rollback') from.fence = ''
      else if (move?.phase === 'clean') {
        from.data = undefined
        from.discarded = move.id
      }
      reports.source = move && {
        id: move.id,
        isFenced: from.fence === move.id,
        isReleased: move.phase === 'rollback',
        isDiscarded: from.discarded === move.id,
        ...(from.fence === move.id && from.sent && { sent: from.sent }),
      }
    },
    loseFence() {
      if (random() < 0.9 || reports.source === undefined) return
      from.fence = ''
      delete reports.source
    },
    targetNode() {
      const { move } = volume
      if (move?.phase === 'rollback') {
        to.incoming = undefined
        to.received = undefined
        to.removed = move.id
      } else if (move?.phase === 'place' && to.data === undefined) {
        to.data = to.incoming
        to.incoming = undefined
      }
      reports.target = move && {
        id: move.id,
        isPlaced: to.data !== undefined,
        isRemoved: to.removed === move.id,
        ...(to.received && { received: to.received }),
      }
    },
    transfer() {
      const { move } = volume
      if (move === undefined || from.data === undefined || (move.phase !== 'copy' && move.phase !== 'delta')) return
      const isSent = move.phase === 'copy' || from.sent?.round === move.round
      if (to.received?.round === move.round && isSent) return
      // The pod may write while it is copied, and a connection may end after a part.
      const part = from.data.slice(0, random() < 0.3 ? Math.floor(from.data.length / 2) : undefined)
      to.incoming = [...part]
      if (random() < 0.2) return
      if (from.fence === move.id) from.sent = copied(move.round, from.data)
      to.received = copied(move.round, part)
    },
    controller() {
      const { move } = volume
      if (move === undefined) return
      const step = planMove({ move, isCancelled, source: reports.source, target: reports.target })
      if (step.step === 'enter') volume = { ...volume, move: { ...move, phase: step.phase, round: step.round } }
      if (step.step === 'rewrite') {
        if (pod === 'source') throw new Error('a pod writes to the copy that is left')
        volume = { place: 'target', move: { ...move, phase: 'place' } }
      }
      if (step.step !== 'end') return
      ends.push(step.isMoved)
      if (!step.isMoved && from.fence !== '') throw new Error('no pod can start again')
      if (step.isMoved && to.data === undefined) throw new Error('the old copy went before the new one was there')
      volume = { place: volume.place }
    },
    killController() {
      reports = {}
    },
    cancel() {
      if (random() < 0.1) isCancelled = true
    },
  }
  return {
    steps,
    begin() {
      isCancelled = false
      from.sent = undefined
      to.received = undefined
      volume = { place: 'source', move: { id: `m-${++made}`, phase: 'copy', round: 1 } }
    },
    ends,
    isMoving: () => volume.move !== undefined,
    isWhole() {
      const data = volume.place === 'source' ? from.data : to.data
      return data?.length === written && data.every((value, index) => value === index + 1)
    },
  }
}

test('a kill at any step ends in the data at one place, whole', async (t) => {
  const counts = { moved: 0, back: 0 }
  for (let seed = 1; seed <= 500; seed++) {
    const random = seededRandom(seed)
    const { steps, begin, ends, isMoving, isWhole } = world(random)
    const all = Object.values(steps)
    for (let move = 0; move < 3 && !ends.includes(true); move++) {
      begin()
      for (let count = 0; count < 5_000 && isMoving(); count++) all[Math.floor(random() * all.length)]?.()
      if (!isWhole()) t.fail(`seed ${seed}`)
    }
    if (isMoving()) t.fail(`seed ${seed} does not end`)
    for (const isMoved of ends) counts[isMoved ? 'moved' : 'back'] += 1
  }
  t.ok(counts.moved > 50 && counts.back > 50, JSON.stringify(counts))
})
