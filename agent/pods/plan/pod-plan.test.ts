import { test } from 'tap'
import type { Container, Pod } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { aContainer } from '../../testing/builders.ts'
import type { ImageFacts } from '../images/image-decision.ts'
import { newRecord, onEndsObserved } from '../record/pod-record.ts'
import { containerHash } from '../record/spec-hash.ts'
import { planEnding, planPod, planRemoval } from './pod-plan.ts'
import type { PodFacts, PodPlan, PodStep } from './pod-steps.ts'

const image = 'busybox:1.36'
const here: ImageFacts = { present: true, pull: { state: 'none' } }

function wanted(over: Parameters<typeof aPod>[0] = {}, ...names: readonly string[]): Pod {
  const containers = (names.length === 0 ? ['main'] : names).map((name): Container => ({ name, image }))
  return aPod({ name: 'web', containers, ...over })
}

function facts(containers: readonly RuntimeContainer[], over: Partial<PodFacts> = {}): PodFacts {
  const images = new Map(['main', 'a', 'b', 'c'].map((name) => [name, here]))
  return { containers, images, record: newRecord, nowMs: 1_000_000, ...over }
}

let made = 0
function found(
  containerName: string,
  over: Partial<RuntimeContainer> & { attempt?: number; hash?: string } = {},
): RuntimeContainer {
  const { attempt = 0, hash = containerHash({ name: containerName, image }), ...rest } = over
  return aContainer({
    id: `${containerName || 'sandbox'}-${attempt}-${++made}`,
    identity: { containerName, attempt, specHash: hash, gracePeriodSeconds: 7 },
    sandboxID: containerName === '' ? undefined : 'sandbox-0',
    image,
    ...rest,
  })
}

const sandbox = found('', { id: 'sandbox-0' })
const exited = { state: 'exited', exitCode: 1, finishedAt: '2026-01-01T00:00:09Z' } as const

/** `start main 1`, `stop a-0-3 30`: a plan as one reads it. */
function stepTexts({ steps }: PodPlan): readonly string[] {
  return steps.map(stepText)
}

function stepText(step: PodStep): string {
  switch (step.step) {
    case 'lookForImage':
    case 'pullImage':
      return `${step.step} ${step.image}`
    case 'runSandbox':
      return `${step.step} ${step.attempt}`
    case 'startContainer':
      return `start ${step.container.name} ${step.attempt}`
    case 'stop':
      return `stop ${step.target.id} ${step.graceSeconds}`
    case 'preStop':
      return `preStop ${step.target.id} ${step.graceSeconds}`
    case 'remove':
      return `remove ${step.target.id}`
  }
}

test('a new pod gets its sandbox first, then its containers', async (t) => {
  t.same(stepTexts(planPod(wanted(), facts([], { images: new Map() }))), ['lookForImage busybox:1.36', 'runSandbox 0'])
  t.same(stepTexts(planPod(wanted({}, 'a', 'b'), facts([sandbox]))), ['start a 0', 'start b 0'])
})

test('what runs as wanted is taken over', async (t) => {
  const plan = planPod(wanted(), facts([sandbox, found('main')]))
  t.same(stepTexts(plan), [])
  t.equal(plan.waiting.size, 0)
})

test('an image is looked for, pulled when it is missing, and waited for', async (t) => {
  const absent = (pull: ImageFacts['pull']) =>
    facts([sandbox], { images: new Map([['main', { present: false, pull }]]) })
  t.same(stepTexts(planPod(wanted(), absent({ state: 'none' }))), ['pullImage busybox:1.36'])
  const pulling = planPod(wanted(), absent({ state: 'pulling', silentMs: 0 }))
  t.same(stepTexts(pulling), [])
  t.same([...pulling.waiting], [['main', { reason: 'ContainerCreating', message: '' }]], 'while it pulls')
  const failed = planPod(
    wanted(),
    absent({ state: 'failed', message: 'no such host', failedMsAgo: 6_000, retryInMs: 4_000 }),
  )
  t.match(failed.waiting.get('main'), {
    reason: 'ImagePullBackOff',
    message: 'Back-off pulling image "busybox:1.36": ErrImagePull: no such host',
  })
  t.equal(failed.againInMs, 4_000)
})

test('a container with options that cannot be met waits with the reason', async (t) => {
  const bad = aPod({ name: 'web', containers: [{ name: 'main', image: 'Not An Image' }] })
  const plan = planPod(bad, facts([sandbox], { images: new Map() }))
  t.same(stepTexts(plan), [])
  t.equal(plan.waiting.get('main')?.reason, 'InvalidImageName')
})

test('a container that ended is restarted by its restart policy', async (t) => {
  const failed = [sandbox, found('main', exited)]
  const done = [sandbox, found('main', { ...exited, exitCode: 0 })]
  const plan = (restartPolicy: 'Always' | 'OnFailure' | 'Never', containers: readonly RuntimeContainer[]) =>
    stepTexts(planPod(wanted({ restartPolicy }), facts(containers)))
  t.same(plan('Always', failed), ['start main 1'])
  t.same(plan('Always', done), ['start main 1'])
  t.same(plan('OnFailure', failed), ['start main 1'])
  t.same(plan('OnFailure', done), ['stop sandbox-0 0'], 'the sandbox need not stay for it')
  t.same(plan('Never', failed), ['stop sandbox-0 0'])
})

test('what has ended for good stays so when its pod wants another image, what ran for it starts again', async (t) => {
  const hash = 'another'
  const plan = (restartPolicy: 'OnFailure' | 'Never', main: RuntimeContainer, replacing = new Set<string>()) =>
    planPod(wanted({ restartPolicy }), facts([sandbox, main], { record: { ...newRecord, replacing } }))
  const done = found('main', { ...exited, exitCode: 0, hash })
  t.same(stepTexts(plan('OnFailure', done)), ['stop sandbox-0 0'])
  t.same(stepTexts(plan('Never', found('main', { ...exited, hash }))), ['stop sandbox-0 0'])
  t.same(stepTexts(plan('OnFailure', found('main', { ...exited, hash }))), ['start main 1'])
  t.match(plan('Never', found('main', { hash })).steps, [{ step: 'stop', replace: true }])
  t.same(stepTexts(plan('Never', done, new Set([done.id]))), ['start main 1'])
})

test('one that keeps failing waits longer', async (t) => {
  const ended = found('main', exited)
  const key = `main/${containerHash({ name: 'main', image })}`
  const record = {
    ...newRecord,
    exits: new Map([[ended.id, 990_000]]),
    backoffs: new Map([[key, { waitMs: 40_000, restartedAtMs: 900_000 }]]),
  }
  const plan = planPod(wanted(), facts([sandbox, ended], { record }))
  t.same(stepTexts(plan), [])
  t.equal(plan.againInMs, 30_000)
  t.same(plan.waiting.get('main'), {
    reason: 'CrashLoopBackOff',
    message: 'back-off 40s restarting failed container=main pod=web_default(uid-of-web)',
  })
  t.same(stepTexts(planPod(wanted(), facts([sandbox, ended], { record, nowMs: 1_030_000 }))), ['start main 1'])
})

test('without its sandbox everything starts again, in a new one', async (t) => {
  const lost = found('', { ...exited, id: 'sandbox-0' })
  const running = found('main')
  t.same(stepTexts(planPod(wanted(), facts([lost, running]))), [`stop ${running.id} 30`])
  const record = { ...newRecord, stopping: new Map([[running.id, 1_030_000]]) }
  t.same(stepTexts(planPod(wanted(), facts([lost, running], { record }))), [], 'it is being stopped')
  const ended = { ...running, ...exited }
  t.same(stepTexts(planPod(wanted(), facts([lost, ended]))), ['runSandbox 1'])
  const next = found('', { attempt: 1 })
  t.same(stepTexts(planPod(wanted(), facts([lost, ended, next]))), ['start main 1', 'remove sandbox-0'])
  t.same(
    stepTexts(planPod(wanted({ restartPolicy: 'Never' }), facts([lost, ended]))),
    [],
    'what may not restart needs none',
  )
})

test('a new image replaces the container, whatever the policy', async (t) => {
  const old = found('main', { hash: 'another' })
  const pod = wanted({ restartPolicy: 'Never' })
  t.same(stepTexts(planPod(pod, facts([sandbox, old]))), [`stop ${old.id} 30`])
  const record = { ...newRecord, replacing: new Set([old.id]) }
  t.same(stepTexts(planPod(pod, facts([sandbox, { ...old, ...exited }], { record }))), ['start main 1'])
})

test('what an interrupted agent left half made goes first; one dead container each is kept', async (t) => {
  const half = found('main', { state: 'created', startedAt: undefined })
  t.same(stepTexts(planPod(wanted(), facts([sandbox, half]))), [`remove ${half.id}`])
  const [oldest, older] = [found('main', exited), found('main', { ...exited, attempt: 1 })]
  t.same(stepTexts(planPod(wanted(), facts([sandbox, oldest, older, found('main', { attempt: 2 })]))), [
    `remove ${oldest.id}`,
  ])
})

test('a container the engine could not start counts as one that failed', async (t) => {
  const broken = found('main', { state: 'created', startedAt: undefined, error: 'no such file' })
  t.same(stepTexts(planPod(wanted(), facts([sandbox, broken]))), ['start main 1'])
  t.same(stepTexts(planPod(wanted({ restartPolicy: 'Never' }), facts([sandbox, broken]))), ['stop sandbox-0 0'])
})

test('the restart count continues when the engine no longer has the container', async (t) => {
  const record = { ...newRecord, restartCounts: new Map([['main', 4]]) }
  t.same(stepTexts(planPod(wanted(), facts([sandbox], { record }))), ['start main 5'])
})

test('an ended container that the engine no longer has is not started, and not removed', async (t) => {
  const [a, b] = [found('a', exited), found('b')]
  for (const [restartPolicy, exitCode] of [
    ['Never', 1],
    ['OnFailure', 0],
  ] as const) {
    const pod = wanted({ restartPolicy }, 'a', 'b')
    const record = onEndsObserved(newRecord, pod, [sandbox, { ...a, exitCode }, b])
    t.same(stepTexts(planPod(pod, facts([sandbox, b], { record }))), [], restartPolicy)
    const ended = [sandbox, { ...b, ...exited, exitCode }]
    t.same(stepTexts(planPod(pod, facts(ended, { record }))), ['stop sandbox-0 0'], 'nothing is left to run')
    t.same(stepTexts(planEnding(pod, facts([sandbox, b], { record }), 5)), [`stop ${b.id} 5`])
    t.same(stepTexts(planRemoval(pod, facts(ended, { record }))), [`remove ${b.id}`, 'remove sandbox-0'])
    const other = wanted({ restartPolicy }, 'b')
    t.same(stepTexts(planPod(other, facts([sandbox, b], { record }))), [], 'no longer in the specification')
  }
})

test('what could not be made is tried again later', async (t) => {
  const trouble = { reason: 'CreateContainerError', message: 'no', retryAtMs: 1_004_000 }
  const record = { ...newRecord, startProblems: new Map([['main', trouble]]) }
  const plan = planPod(wanted({}, 'main', 'b'), facts([sandbox], { record }))
  t.same(stepTexts(plan), ['start b 0'], 'the other one does not wait for it')
  t.equal(plan.againInMs, 4_000)
  t.match(plan.waiting.get('main'), { reason: 'CreateContainerError', message: 'no' })
})

test('a removed pod’s containers end with their grace, then all of it goes, the sandbox last', async (t) => {
  const [a, b] = [found('a'), found('b', exited)]
  const leaving = wanted({ metadata: { deletionTimestamp: '2026-01-01T00:01:00Z', deletionGracePeriodSeconds: 5 } })
  t.same(stepTexts(planRemoval(leaving, facts([sandbox, a, b]))), [`stop ${a.id} 5`])
  t.same(stepTexts(planRemoval(undefined, facts([sandbox, a, b]))), [`stop ${a.id} 7`], 'its own, from its label')
  const ended = { ...a, ...exited }
  t.same(stepTexts(planRemoval(leaving, facts([sandbox, ended, b]))), [
    `remove ${a.id}`,
    `remove ${b.id}`,
    'remove sandbox-0',
  ])
})

test('a second, shorter grace period is used, a longer one is not', async (t) => {
  const a = found('a')
  const record = { ...newRecord, stopping: new Map([[a.id, 1_020_000]]) }
  const leaving = (deletionGracePeriodSeconds: number) =>
    wanted({ metadata: { deletionTimestamp: '2026-01-01T00:01:00Z', deletionGracePeriodSeconds } })
  t.same(stepTexts(planRemoval(leaving(60), facts([sandbox, a], { record }))), [])
  t.same(
    stepTexts(planRemoval(leaving(0), facts([sandbox, a], { record }))),
    [`stop ${a.id} 2`],
    'at least two seconds',
  )
})

test('a pod that must make room at once has one second, even if it was ending within its own grace period', async (t) => {
  const a = found('a')
  t.same(stepTexts(planEnding(wanted({}, 'a'), facts([sandbox, a]), 1)), [`stop ${a.id} 1`])
  t.same(stepTexts(planEnding(wanted({}, 'a'), facts([sandbox, a]), 0)), [`stop ${a.id} 1`])
  t.same(stepTexts(planRemoval(wanted({}, 'a'), facts([sandbox, a]), 1)), [`stop ${a.id} 1`])
  const leaving = wanted({ metadata: { deletionTimestamp: '2026-01-01T00:01:00Z', deletionGracePeriodSeconds: 5 } })
  const record = { ...newRecord, stopping: new Map([[a.id, 1_005_000]]) }
  t.same(stepTexts(planRemoval(leaving, facts([sandbox, a], { record }), 1)), [`stop ${a.id} 1`])
  t.same(stepTexts(planRemoval(leaving, facts([sandbox, a]), 60)), [`stop ${a.id} 5`], 'no longer than its own')
})

test('a pod that is over stops, and stays to be looked at', async (t) => {
  const a = found('a')
  t.same(stepTexts(planEnding(wanted({}, 'a'), facts([sandbox, a]), 3)), [`stop ${a.id} 3`])
  t.same(stepTexts(planEnding(wanted({}, 'a'), facts([sandbox, { ...a, ...exited }]), 3)), ['stop sandbox-0 0'])
  t.same(
    stepTexts(
      planEnding(
        wanted({}, 'a'),
        facts([
          { ...sandbox, ...exited },
          { ...a, ...exited },
        ]),
        3,
      ),
    ),
    [],
  )
})

test('from any state, following the plan ends in an empty plan', async (t) => {
  const random = seeded(7)
  for (let round = 0; round < 2000; round++) {
    const policy = pick(random, ['Always', 'OnFailure', 'Never'] as const)
    const pod = wanted({ restartPolicy: policy }, 'a', 'b')
    const start = randomContainers(random)
    for (const plan of [
      (given: PodFacts) => planPod(pod, given),
      (given: PodFacts) => planRemoval(pod, given),
      (given: PodFacts) => planEnding(pod, given, undefined),
    ]) {
      let containers = start
      let steps: readonly string[] = ['begin']
      for (let visit = 0; visit < 12 && steps.length > 0; visit++) {
        const now = plan(facts(containers))
        steps = stepTexts(now)
        containers = now.steps.reduce(followed, containers)
      }
      if (steps.length > 0) t.fail('it does not settle', { policy, start, steps })
      const names = containers.filter(({ state }) => state === 'running').map(({ identity }) => identity.containerName)
      if (new Set(names).size !== names.length) t.fail('the same container runs twice', { policy, start, names })
    }
  }
  t.pass('2000 states')
})

/** What the world is after a step; containers that are started run on, those stopped end. */
function followed(containers: readonly RuntimeContainer[], step: PodStep): readonly RuntimeContainer[] {
  switch (step.step) {
    case 'runSandbox':
      return [...containers, found('', { attempt: step.attempt })]
    case 'startContainer':
      return [...containers, found(step.container.name, { attempt: step.attempt, sandboxID: step.sandbox.id })]
    case 'stop':
      return containers.map((one) => (one.id === step.target.id ? { ...one, state: 'exited', exitCode: 137 } : one))
    case 'remove':
      return containers.filter(({ id }) => id !== step.target.id)
    default:
      return containers
  }
}

function randomContainers(random: () => number): readonly RuntimeContainer[] {
  const states = ['running', 'exited', 'created', 'dead', 'paused'] as const
  const count = Math.floor(random() * 6)
  return Array.from({ length: count }, () => {
    const name = pick(random, ['', 'a', 'b', 'gone'])
    return found(name, {
      state: pick(random, states),
      exitCode: pick(random, [0, 1]),
      error: pick(random, ['', 'no such file']),
      attempt: Math.floor(random() * 4),
      sandboxID: pick(random, ['sandbox-0', 'elsewhere']),
      ...(pick(random, [true, false]) ? { hash: 'another' } : {}),
    })
  })
}

function pick<T>(random: () => number, choices: readonly T[]): T {
  return choices[Math.floor(random() * choices.length)] as T
}

function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return state / 0x80000000
  }
}

const step = (name: string, over: Partial<RuntimeContainer> = {}) => found(name, over)
const staged = (restartPolicy: 'Always' | 'OnFailure' | 'Never' = 'Always') =>
  wanted({
    restartPolicy,
    spec: {
      initContainers: [
        { name: 'a', image },
        { name: 'b', image, restartPolicy: 'Always' },
        { name: 'c', image },
      ],
    },
  })
const succeeded = { ...exited, exitCode: 0 } as const

test('init containers run one after the other, sidecars stay, then comes the rest', async (t) => {
  const plan = (containers: readonly RuntimeContainer[], over: Partial<PodFacts> = {}) =>
    stepTexts(planPod(staged(), facts(containers, over)))
  const [a, b, c, main] = [step('a', succeeded), step('b'), step('c', succeeded), step('main')]
  t.same(plan([sandbox]), ['start a 0'])
  t.same(plan([sandbox, step('a')]), [], 'the first one works')
  t.same(plan([sandbox, step('a', exited)]), ['start a 1'], 'until it succeeds')
  t.same(plan([sandbox, a]), ['start b 0'])
  const starting = new Map([[b.id, { started: false, ready: false }]])
  t.same(plan([sandbox, a, b], { record: { ...newRecord, probes: starting } }), [], 'the sidecar is not up yet')
  t.same(plan([sandbox, a, b]), ['start c 0'])
  t.same(plan([sandbox, a, b, c]), ['start main 0'])
  t.same(plan([sandbox, a, b, c, main]), [])
  t.same(plan([sandbox, b, main]), [], 'what is done may be swept away')
  t.same(plan([sandbox, a, { ...b, ...exited }, c, main]), ['start b 1'], 'a sidecar is started again')
  const old = [a, b, c, main].map((one) => ({ ...one, ...succeeded, sandboxID: 'gone' }))
  t.same(plan([sandbox, ...old]), ['start a 1'], 'in a new sandbox all of it happens again')
})

test('another image reaches a sidecar and what is still to run, not an init container at work', async (t) => {
  const plan = (containers: readonly RuntimeContainer[]) => stepTexts(planPod(staged(), facts(containers)))
  const other = { hash: 'another' }
  const [a, b, changed, main] = [step('a', succeeded), step('b'), found('b', other), step('main')]
  t.same(plan([sandbox, found('a', other)]), [], 'it ends as it began')
  t.same(plan([sandbox, found('a', { ...other, ...succeeded }), b, main]), [])
  t.same(plan([sandbox, found('a', { ...other, ...exited })]), ['start a 1'])
  t.same(plan([sandbox, a, changed, main]), [`stop ${changed.id} 30`])
})

test('a failed init container ends a pod that may try nothing twice, and its sidecars', async (t) => {
  const [a, b, c] = [step('a', succeeded), step('b'), step('c', exited)]
  t.same(stepTexts(planPod(staged('Never'), facts([sandbox, a, b, c]))), [`stop ${b.id} 30`])
  t.same(stepTexts(planPod(staged('Never'), facts([sandbox, a, { ...b, ...exited }, c]))), ['stop sandbox-0 0'])
})

test('sidecars end once their pod has done its work', async (t) => {
  const [a, b, c, main] = [step('a', succeeded), step('b'), step('c', succeeded), step('main', succeeded)]
  t.same(stepTexts(planPod(staged('OnFailure'), facts([sandbox, a, b, c, main]))), [`stop ${b.id} 30`])
})

test('the preStop hooks of sidecars begin with those of the others, once', async (t) => {
  const lifecycle = { preStop: { sleep: { seconds: 1 } } }
  const pod = wanted({
    metadata: { deletionTimestamp: '2026-01-01T00:01:00Z', deletionGracePeriodSeconds: 10 },
    spec: { initContainers: [{ name: 'a', image, restartPolicy: 'Always', lifecycle }] },
  })
  const [a, main] = [step('a'), step('main')]
  t.same(stepTexts(planRemoval(pod, facts([sandbox, a, main]))), [`preStop ${a.id} 10`, `stop ${main.id} 10`])
  const record = { ...newRecord, preStops: new Set([a.id]), stopping: new Map([[main.id, 1_010_000]]) }
  t.same(stepTexts(planRemoval(pod, facts([sandbox, a, main], { record }))), [])
})

test('of a pod that goes, sidecars end last, in reverse order, within the time the pod has', async (t) => {
  const pod = wanted({
    metadata: { deletionTimestamp: '2026-01-01T00:01:00Z', deletionGracePeriodSeconds: 10 },
    spec: { initContainers: ['a', 'b'].map((name) => ({ name, image, restartPolicy: 'Always' })) },
  })
  const [a, b, main] = [step('a'), step('b'), step('main')]
  t.same(stepTexts(planRemoval(pod, facts([sandbox, a, b, main]))), [`stop ${main.id} 10`])
  t.same(stepTexts(planRemoval(pod, facts([sandbox, main, a, b]))), [`stop ${main.id} 10`])
  t.same(stepTexts(planRemoval(pod, facts([sandbox, b, a]))), [`stop ${b.id} 10`], 'in whatever order they are listed')
  const record = { ...newRecord, leavingUntilMs: 1_004_000 }
  t.same(stepTexts(planRemoval(pod, facts([sandbox, a, b, { ...main, ...exited }], { record }))), [`stop ${b.id} 4`])
  const late = { ...newRecord, leavingUntilMs: 999_000 }
  t.same(stepTexts(planRemoval(pod, facts([sandbox, a, { ...b, ...exited }], { record: late }))), [`stop ${a.id} 2`])
})

test('a container that fails its probe or its hook is stopped, and started again', async (t) => {
  const main = found('main')
  const failed = { why: 'Container main failed liveness probe, will be restarted', graceSeconds: 4 }
  const probes = new Map([[main.id, { started: true, ready: true, failed }]])
  const record = { ...newRecord, probes }
  t.same(stepTexts(planPod(wanted(), facts([sandbox, main], { record }))), [`stop ${main.id} 4`])
  t.same(stepTexts(planPod(wanted(), facts([sandbox, { ...main, ...exited }], { record }))), ['start main 1'])
})

test('a container waits for the postStart hook of the one before it', async (t) => {
  const a = found('a')
  const record = { ...newRecord, postStarts: new Set([a.id]) }
  t.same(stepTexts(planPod(wanted({}, 'a', 'b'), facts([sandbox, a], { record }))), [])
})

test('a problem of the sandbox or of a start is the waiting reason of the container', async (t) => {
  const sandboxProblem = 'Failed to create pod sandbox: port taken'
  const stuck = { ...newRecord, sandboxProblem, sandboxRetryAtMs: 1_005_000 }
  const waits = planPod(wanted(), facts([], { record: stuck }))
  t.same(waits.waiting.get('main'), { reason: 'ContainerCreating', message: sandboxProblem })
  const refused = found('main', { state: 'created', startedAt: undefined, error: 'no such user' })
  const key = `main/${containerHash({ name: 'main', image })}`
  const backoffs = new Map([[key, { waitMs: 20_000, restartedAtMs: 1_000_000 }]])
  const later = planPod(wanted(), facts([sandbox, refused], { record: { ...newRecord, backoffs } }))
  t.same(later.waiting.get('main'), { reason: 'RunContainerError', message: 'no such user' })
})

test('of a pod of which nothing is left nothing is planned', async (t) => {
  t.same(planRemoval(undefined, facts([])), { steps: [], waiting: new Map(), againInMs: undefined })
})

test('an ephemeral container starts in a sandbox that runs, before the others, and keeps none alive', async (t) => {
  const debug = { name: 'debug', image }
  const pod = (restartPolicy: 'Always' | 'Never') => wanted({ restartPolicy, spec: { ephemeralContainers: [debug] } })
  const images = new Map(['main', 'debug'].map((name) => [name, here]))
  const plan = (containers: readonly RuntimeContainer[], restartPolicy: 'Always' | 'Never' = 'Always') =>
    stepTexts(planPod(pod(restartPolicy), facts(containers, { images })))
  t.same(plan([sandbox, found('main')]), ['start debug 0'])
  t.same(plan([sandbox]), ['start debug 0', 'start main 0'])
  t.same(plan([]), ['runSandbox 0'])
  t.same(plan([sandbox, found('main'), found('debug')]), [])
  t.same(plan([sandbox, found('main'), found('debug', exited)]), [], 'it is not started again')
  t.same(plan([sandbox, found('main', exited)], 'Never'), ['stop sandbox-0 0'])
})

test('a container that its pod does not name is stopped and removed, unless the pod may be an older version', async (t) => {
  const [running, ended] = [found('gone'), found('old', exited)]
  const containers = [sandbox, found('main'), running, ended]
  const plan = planPod(wanted(), facts(containers))
  t.same(stepTexts(plan), [`stop ${running.id} 30`, `remove ${ended.id}`])
  t.match(plan.steps[0], { why: 'Stopping container gone' })
  const before = planPod(wanted({}, 'main', 'b'), facts([sandbox, found('main'), running]))
  t.same(stepTexts(before), [`stop ${running.id} 30`], 'before another one starts')
  const record = { ...newRecord, stopping: new Map([[running.id, 1_030_000]]) }
  t.same(stepTexts(planPod(wanted(), facts(containers, { record }))), [`remove ${ended.id}`], 'it is being stopped')
  t.same(stepTexts(planPod(wanted(), facts(containers, { mayBeOld: true }))), [])
})

test('two instances of one container never run side by side: the older one stops, and nothing starts before', async (t) => {
  const older = found('main')
  const newest = found('main', { attempt: 1 })
  const both = planPod(wanted(), facts([sandbox, older, newest]))
  t.same(stepTexts(both), [`stop ${older.id} 30`])
  t.match(both.steps[0], { why: 'Stopping container main' })
  t.same(stepTexts(planPod(wanted(), facts([sandbox, older, { ...newest, ...exited }]))), [`stop ${older.id} 30`])
  const record = { ...newRecord, stopping: new Map([[older.id, 1_030_000]]) }
  t.same(stepTexts(planPod(wanted(), facts([sandbox, older, { ...newest, ...exited }], { record }))), [])
})

test('an older sandbox goes when nothing runs on it any more', async (t) => {
  const next = found('', { attempt: 1, id: 'sandbox-1' })
  const main = found('main', { sandboxID: 'sandbox-1' })
  t.same(stepTexts(planPod(wanted(), facts([sandbox, next, main]))), ['remove sandbox-0'])
  const behind = found('b')
  const plan = planPod(wanted({}, 'main', 'b'), facts([sandbox, next, main, behind]))
  t.same(stepTexts(plan), [`stop ${behind.id} 30`], 'b runs on the network of the older one')
  const ended = planPod(wanted({}, 'main', 'b'), facts([sandbox, next, main, { ...behind, ...exited }]))
  t.same(stepTexts(ended), ['start b 1', 'remove sandbox-0'])
})

test('a sandbox is made again when its time has come, and is a lost one when there was one before', async (t) => {
  const retry = (sandboxRetryAtMs: number, containers: readonly RuntimeContainer[] = []) =>
    planPod(wanted(), facts(containers, { record: { ...newRecord, sandboxRetryAtMs } }))
  t.match(retry(1_000_001), { steps: [], againInMs: 1 })
  t.match(retry(1_000_000), { steps: [{ step: 'runSandbox', attempt: 0, lost: false }], againInMs: undefined })
  const lost = { ...sandbox, ...exited }
  t.match(retry(0, [lost]).steps, [{ step: 'runSandbox', attempt: 1, lost: true }])
})

test('a problem of the sandbox is not shown by a container that waits for something else', async (t) => {
  const problem = { ...newRecord, sandboxProblem: 'port taken', sandboxRetryAtMs: 1_005_000 }
  const images = new Map([['main', { present: false, pull: { state: 'none' } } as const]])
  const bad = wanted({
    containers: [
      { name: 'main', image },
      { name: 'b', image: 'Not An Image' },
    ],
  })
  const { waiting } = planPod(bad, facts([], { images, record: problem }))
  t.equal(waiting.get('main')?.message, 'port taken')
  t.equal(waiting.get('b')?.reason, 'InvalidImageName')
  t.match(waiting.get('b')?.message, /invalid reference format/)
})

test('an image of two containers is looked for once, and the plan is due when the first of them is', async (t) => {
  const none = facts([sandbox], { images: new Map() })
  t.same(stepTexts(planPod(wanted({}, 'a', 'b'), none)), ['lookForImage busybox:1.36'])
  const problem = (retryAtMs: number) => ({ reason: 'CreateContainerError', message: 'no', retryAtMs })
  const startProblems = new Map([
    ['a', problem(1_009_000)],
    ['b', problem(1_004_000)],
    ['c', problem(1_007_000)],
  ])
  const plan = planPod(wanted({}, 'a', 'b', 'c'), facts([sandbox], { record: { ...newRecord, startProblems } }))
  t.equal(plan.againInMs, 4_000)
  t.equal(planPod(wanted(), facts([sandbox, found('main')])).againInMs, undefined)
})

test('a pod that is over removes what was left half made before it lets the sandbox go', async (t) => {
  const half = found('a', { state: 'created', startedAt: undefined })
  const ended = found('b', exited)
  const pod = wanted({}, 'a', 'b')
  t.same(stepTexts(planEnding(pod, facts([sandbox, half, ended]), 3)), [`remove ${half.id}`])
  const running = found('b')
  const plan = planEnding(pod, facts([sandbox, half, running]), 3)
  t.same(stepTexts(plan), [`remove ${half.id}`, `stop ${running.id} 3`])
  t.match(plan.steps[1], { leaving: true, why: 'Stopping container b' })
})

test('each sandbox of a pod that is over ends once', async (t) => {
  const next = found('', { attempt: 1, id: 'sandbox-1' })
  const ended = [sandbox, next, found('a', exited)]
  t.same(stepTexts(planEnding(wanted({}, 'a'), facts(ended), 3)), ['stop sandbox-1 0', 'stop sandbox-0 0'])
  const record = { ...newRecord, stopping: new Map([['sandbox-1', 1_000_000]]) }
  t.same(stepTexts(planEnding(wanted({}, 'a'), facts(ended, { record }), 3)), ['stop sandbox-0 0'])
})

test('what stops a container is described in Kubernetes’ words', async (t) => {
  const why = (pod: Pod, containers: readonly RuntimeContainer[]) =>
    planPod(pod, facts(containers)).steps.flatMap((one) => (one.step === 'stop' ? one.why : []))
  t.same(why(wanted(), [sandbox, found('main', { hash: 'another' })]), [
    'Container main definition changed, will be restarted',
  ])
  const ready = [sandbox, step('a', succeeded), step('c', succeeded), step('main')]
  t.same(why(staged(), [...ready, found('b', { hash: 'another' })]), ['Init container b definition changed'])
  t.same(why(wanted(), [found('', { ...exited, id: 'sandbox-0' }), found('main')]), ['Stopping container main'])
})

test('containers with a hook to come hold those after them, not those before', async (t) => {
  const hooked = wanted({
    containers: [
      { name: 'a', image },
      { name: 'b', image, lifecycle: { postStart: { exec: { command: ['true'] } } } },
      { name: 'c', image },
    ],
  })
  t.same(stepTexts(planPod(hooked, facts([sandbox]))), ['start a 0', 'start b 0'])
  const b = found('b', { hash: containerHash(hooked.spec.containers[1] ?? { name: 'b' }) })
  t.same(stepTexts(planPod(hooked, facts([sandbox, b]))), ['start a 0', 'start c 0'])
})

test('a container that the engine could not remove is tried again later, and holds nothing else', async (t) => {
  const [stuck, other] = [found('a', exited), found('b', exited)]
  const retry = (atMs: number) => ({ ...newRecord, removalRetryAtMs: new Map([[stuck.id, atMs]]) })
  const plan = planRemoval(undefined, facts([stuck, other], { record: retry(1_005_000) }))
  t.same(stepTexts(plan), [`remove ${other.id}`])
  t.equal(plan.againInMs, 5_000)
  const due = planRemoval(undefined, facts([stuck, other], { record: retry(1_000_000) }))
  t.same(stepTexts(due), [`remove ${stuck.id}`, `remove ${other.id}`])
  t.equal(due.againInMs, undefined)
  const half = found('main', { state: 'created', startedAt: undefined })
  const record = { ...newRecord, removalRetryAtMs: new Map([[half.id, 1_005_000]]) }
  t.same(stepTexts(planPod(wanted({}, 'a', 'main'), facts([sandbox, half], { record }))), ['start a 0', 'start main 1'])
  const unnamed = planPod(wanted({}, 'a'), facts([sandbox, half], { record }))
  t.same(stepTexts(unnamed), ['start a 0'], 'the pod does not name it')
  t.equal(unnamed.againInMs, 5_000)
})
