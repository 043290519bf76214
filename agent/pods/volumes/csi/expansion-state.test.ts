import { test } from 'tap'
import {
  afterExpansion,
  type ExpansionEnd,
  type ExpansionState,
  type ExpansionStep,
  expansionRetryMs,
  nextVolumeExpansion,
  noExpansions,
  withoutExpansion,
} from './expansion-state.ts'

const aVolume = (more: { size?: string; isAwaited?: boolean; isNew?: boolean } = {}) => {
  const { size = '2Gi', isAwaited = true, isNew = false } = more
  return { key: 'driver handle', place: 'pod-1/data', growth: { size, isAwaited }, isNew }
}
const aState = (more: Partial<ExpansionState> = {}): ExpansionState => ({ ...noExpansions, ...more })
const nowMs = 1_000_000

test('a mounted volume is expanded where its claim waits for it, or its size has changed since this agent saw it', async (t) => {
  const seen = (size: string) => aState({ sizes: new Map([['driver handle', size]]) })
  const waits = aState({ unfinished: new Set(['pod-1/data']) })
  const failedAgo = (ms: number) => aState({ failedMs: new Map([['driver handle', nowMs - ms]]) })
  for (const [what, state, volume, step] of [
    ['its claim waits', noExpansions, aVolume(), 'online'],
    ['its claim waits, and its pod starts', noExpansions, aVolume({ isNew: true }), 'mount'],
    ['seen for the first time, and no claim waits', noExpansions, aVolume({ isAwaited: false }), 'none'],
    ['as this agent saw it last', seen('2Gi'), aVolume(), 'none'],
    ['as this agent saw it last, and its pod starts', seen('2Gi'), aVolume({ isNew: true }), 'none'],
    ['seen with another size', seen('1Gi'), aVolume({ isAwaited: false }), 'online'],
    ['the pod waits for it since an earlier attempt', waits, aVolume(), 'mount'],
    ['it failed a moment ago', failedAgo(0), aVolume(), 'none'],
    ['it failed just within the back-off', failedAgo(expansionRetryMs - 1), aVolume(), 'none'],
    ['it failed before the back-off', failedAgo(expansionRetryMs), aVolume(), 'online'],
    ['it failed a moment ago, and a pod starts', failedAgo(0), aVolume({ isNew: true }), 'mount'],
  ] as const) {
    t.equal(nextVolumeExpansion(state, volume, nowMs).step, step, what)
  }
})

test('a volume is expanded if its size changes after this agent has seen it', async (t) => {
  const first = nextVolumeExpansion(noExpansions, aVolume({ size: '1Gi', isAwaited: false }), nowMs)
  t.same([...first.state.sizes], [['driver handle', '1Gi']])
  t.equal(nextVolumeExpansion(first.state, aVolume({ size: '2Gi', isAwaited: false }), nowMs).step, 'online')
  t.equal(noExpansions.sizes.size, 0, 'the state before is as it was')
})

test('what an attempt leaves', async (t) => {
  const waits = new Set(['pod-1/data', 'pod-2/data'])
  const done = new Map([['driver handle', '2Gi']])
  const failed = new Map([['driver handle', nowMs]])
  const cases: readonly [Exclude<ExpansionStep, 'none'>, ExpansionEnd, Partial<ExpansionState>][] = [
    ['mount', 'expanded', { sizes: done, unfinished: new Set(['pod-2/data']) }],
    ['mount', 'later', { unfinished: new Set(['pod-2/data']) }],
    ['mount', 'late', { unfinished: waits }],
    ['mount', 'failed', { unfinished: waits }],
    ['online', 'expanded', { sizes: done, unfinished: new Set(['pod-2/data']) }],
    ['online', 'later', { unfinished: new Set(['pod-2/data']) }],
    ['online', 'late', { unfinished: waits }],
    ['online', 'failed', { unfinished: waits, failedMs: failed }],
  ]
  for (const [step, end, left] of cases) {
    t.same(afterExpansion(aState({ unfinished: waits }), aVolume(), step, end, nowMs), aState(left), `${step} ${end}`)
  }
  t.same(
    afterExpansion(noExpansions, aVolume(), 'mount', 'failed', nowMs),
    aState({ unfinished: new Set(['pod-1/data']) }),
    'the pod waits from the first failure on',
  )
})

test('a volume that is no longer mounted leaves nothing, and others stay', async (t) => {
  const state = aState({
    sizes: new Map([
      ['driver handle', '2Gi'],
      ['driver other', '1Gi'],
    ]),
    failedMs: new Map([
      ['driver handle', 1],
      ['driver other', 2],
    ]),
    unfinished: new Set(['pod-1/data', 'pod-1/other']),
  })
  t.same(
    withoutExpansion(state, aVolume()),
    aState({
      sizes: new Map([['driver other', '1Gi']]),
      failedMs: new Map([['driver other', 2]]),
      unfinished: new Set(['pod-1/other']),
    }),
  )
})
