import { test } from 'tap'
import {
  type ControllerLook,
  type ControllerTrialHistory,
  type ControllerTrialRules,
  judgeController,
  nothingSeenOfController,
} from './controller-verdict.ts'

const nodes = (count: number, first = 0) => Array.from({ length: count }, (_, index) => `pi-${first + index}`)
const rules: ControllerTrialRules = {
  ...{ trialMs: 600_000, idleMs: 300_000, longestMs: 3_600_000 },
  ...{ wasWorking: true, connectedNodes: nodes(10) },
}
const running = { state: 'running', invocation: '1', exitStatus: 0 } as const
const well: Omit<ControllerLook, 'nowMs'> = { unit: running, works: true, connectedNodes: nodes(10) }
const minute = 60_000

/** The verdict after these looks, each at its minute. */
function after(
  looks: readonly (readonly [atMinute: number, look: Omit<ControllerLook, 'nowMs'>])[],
  given: ControllerTrialRules = rules,
) {
  let history: ControllerTrialHistory | undefined
  let verdict: ReturnType<typeof judgeController>['verdict']
  for (const [at, look] of looks)
    ({ history, verdict } = judgeController(history, { ...look, nowMs: at * minute }, given))
  return verdict
}

test('a controller that works with its nodes for the whole time is committed', async (t) => {
  const looks = [
    [0, well],
    [9, well],
  ] as const
  t.equal(after(looks), undefined)
  t.match(after([...looks, [10, well]]), {
    outcome: 'commit',
    reason: /of 10 nodes that were connected before, 10 are again/,
  })
})

test('eight of ten nodes are enough, seven are not', async (t) => {
  const [eight, seven] = [8, 7].map((count) => ({ ...well, connectedNodes: nodes(count) }))
  t.match(after([0, 10].map((at) => [at, eight ?? well])), { outcome: 'commit' })
  t.equal(after([0, 10].map((at) => [at, seven ?? well])), undefined)
  t.match(after([0, 60].map((at) => [at, seven ?? well])), {
    outcome: 'reject',
    reason: 'Of 10 nodes that were connected before, 7 were again after 3600 s',
  })
})

test('nodes that have joined since do not stand for those that are lost; one that was installed again does', async (t) => {
  const others = { ...well, connectedNodes: [...nodes(7), ...nodes(20, 100)] }
  t.equal(after([0, 10].map((at) => [at, others])), undefined)
  t.match(after([0, 60].map((at) => [at, others])), { outcome: 'reject', reason: /, 7 were again after/ })
  const again = { ...well, connectedNodes: [...nodes(8), 'pi-100'] }
  t.match(after([0, 10].map((at) => [at, again])), { outcome: 'commit', reason: /before, 8 are again/ })
})

test('a fleet without nodes does not wait for any', async (t) => {
  const none = { ...well, connectedNodes: [] }
  t.match(
    after(
      [0, 10].map((at) => [at, none]),
      { ...rules, connectedNodes: [] },
    ),
    { outcome: 'commit' },
  )
})

test('an interruption and another start begin the time of health again', async (t) => {
  const idle = { ...well, works: false }
  const again = { ...well, unit: { ...running, invocation: '2' } }
  for (const between of [idle, nothingSeenOfController, again]) {
    const last = between === again ? again : well
    const looks = [[0, well], [5, between], [10, last]] as const // biome-ignore format: one line
    t.equal(after(looks), undefined)
    t.match(after([...looks, [20, last]]), { outcome: 'commit' })
  }
})

test('one that systemd no longer starts is rejected at once', async (t) => {
  const failed = { ...well, unit: { state: 'failed', invocation: '1', exitStatus: 78 } } as const
  t.match(after([[0, failed]]), { outcome: 'reject', reason: /ended with status 78/ })
})

test('one that runs and does not work is rejected, unless none worked before', async (t) => {
  const idle = { ...well, works: false, connectedNodes: undefined }
  t.equal(after([0, 4].map((at) => [at, idle])), undefined)
  t.match(after([0, 5].map((at) => [at, idle])), { outcome: 'reject', reason: /not worked for 300 s/ })
  const before = { ...rules, wasWorking: false, connectedNodes: [] }
  t.equal(
    after(
      [0, 59].map((at) => [at, idle]),
      before,
    ),
    undefined,
  )
  t.match(
    after(
      [0, 60].map((at) => [at, idle]),
      before,
    ),
    { outcome: 'inconclusive' },
  )
})

test('a trial that an administrator stops, or that starts for ever, ends', async (t) => {
  const stopped = { ...well, works: false, unit: { ...running, state: 'stopped' } } as const
  t.match(after([0, 60].map((at) => [at, stopped])), { outcome: 'inconclusive', reason: /stopped by hand/ })
  t.match(after([0, 60].map((at) => [at, nothingSeenOfController])), { outcome: 'reject', reason: /not healthy/ })
})
