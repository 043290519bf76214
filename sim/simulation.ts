/** One simulated world from its seed: a fleet with workloads, faults, their end, and what is left then. */
import { measureTurnsBy } from '../daemon/limits/turn-limit.ts'
import { runFaults } from './faults.ts'
import { acrossRestores } from './invariants/across-restores.ts'
import { answeredIsStored } from './invariants/answered-is-stored.ts'
import { budgetsHold } from './invariants/budgets-hold.ts'
import { claimDataStays } from './invariants/claim-data-stays.ts'
import { completedStaysCompleted } from './invariants/completed-stays-completed.ts'
import { deletedStaysDeleted } from './invariants/deleted-stays-deleted.ts'
import { endProblems, type StoredThing } from './invariants/end-state.ts'
import { evictionsAreLimited } from './invariants/evictions-are-limited.ts'
import { healthyIsNotEvicted } from './invariants/healthy-is-not-evicted.ts'
import { type Invariant, type Judge, judgeOf } from './invariants/invariant.ts'
import { leaderWrites } from './invariants/leader-writes.ts'
import { oneMachineWrites } from './invariants/one-machine-writes.ts'
import { onePodOfAName } from './invariants/one-pod-of-a-name.ts'
import { programsRun } from './invariants/programs-run.ts'
import { readsAreCurrent } from './invariants/reads-are-current.ts'
import { secretsStay } from './invariants/secrets-stay.ts'
import { watchIsWhole } from './invariants/watch-is-whole.ts'
import { guardedPods } from './people/operator.ts'
import { simulatedUser, type User } from './people/user.ts'
import { watchKind } from './people/watcher.ts'
import { image, isInstance } from './people/workloads.ts'
import { type Coverage, type CoverageCounter, coverageCounter } from './story/coverage.ts'
import { openStory, type Story } from './story/story.ts'
import { beginLife } from './world/life.ts'
import { usualMachines } from './world/machine-shape.ts'
import { type RandomSource, randomSource } from './world/random-source.ts'
import { simulatedTime } from './world/simulated-time.ts'
import { openWorld, type World } from './world/world.ts'
import { type WorldKind, worldOf, worldPlans } from './worlds.ts'

export type SimulationSettings = {
  readonly seed: number
  /** By default that of the seed. */
  readonly world?: WorldKind
  readonly nodes?: number
  /** For how long new faults begin, in simulated minutes. */
  readonly faultMinutes?: number
  /** Faults that do not happen, by the numbers that the story gives them. The others are the same. */
  readonly skipped?: readonly number[]
  /** Called with each line of the story as it comes. */
  readonly shown?: (line: string) => void
}

export type SimulationResult = {
  readonly seed: number
  readonly story: readonly string[]
  readonly violations: readonly string[]
  /** The rule of the first violation. */
  readonly rule: string | undefined
  readonly simulatedMs: number
  /** Faults that began, with those that were skipped. */
  readonly faults: number
  readonly coverage: Coverage
}

const minuteMs = 60_000
/** Before the first fault. */
const calmMs = 5 * minuteMs
/** After the last fault everything must be as it should be within this time. */
const settledWithinMs = 25 * minuteMs
const lookMs = 10_000
const endRule = 'after the faults'

export async function simulate({
  seed,
  world = worldOf(seed),
  nodes = 3,
  faultMinutes = 30,
  skipped = [],
  shown = () => undefined,
}: SimulationSettings): Promise<SimulationResult> {
  const stopMeasuring = measureTurnsBy(() => 0)
  try {
    return await simulated({ seed, world, nodes, faultMinutes, skipped, shown })
  } finally {
    stopMeasuring()
  }
}

async function simulated(settings: Required<SimulationSettings>): Promise<SimulationResult> {
  const { seed, nodes, faultMinutes, skipped, shown } = settings
  const plan = worldPlans[settings.world]
  const time = simulatedTime()
  const random = randomSource(seed)
  const rules = openRules()
  const counter = coverageCounter(rules)
  let restores = 0
  const countRestores: Judge = ({ kind }) => {
    if (kind === 'restored') restores += 1
    return undefined
  }
  const story = openStory(time, [...rules.map(({ judge }) => judge), counter.judge, countRestores], shown)
  const machines = usualMachines(nodes)
  const world = openWorld({
    time,
    random: random.fork(),
    story,
    machines,
    controllers: plan.controllers,
    hasVolumes: plan.hasVolumes === true,
  })
  const placeOf = (machine: string) => ({ life: beginLife({ time, random: random.fork().next }), machine })
  const place = placeOf('user')
  const user = simulatedUser({ place, api: world.api, random: random.fork(), story })
  start(world)
  const actingRandom = random.fork()
  const faultSource = random.fork()
  const others = plan.others.map((open, i) =>
    open({ place: placeOf(`operator-${i + 1}`), api: world.api, random: random.fork(), story }),
  )
  for (const kind of plan.watched) void watchKind(kind, place, world.api, story)
  const chaosEndsMs = calmMs + faultMinutes * minuteMs
  const isBroken = () => story.violations.length > 0
  let isOver = false
  const acting = act(user, world, actingRandom, chaosEndsMs, () => restores)
  const actingToo = others.map((other) => act(other, world, random.fork(), chaosEndsMs, () => restores))
  let faults = 0
  const began = (number: number) => {
    faults = number
  }
  const faultSettings = { untilMs: chaosEndsMs, more: plan.faults, skipped: new Set(skipped), began }
  const failing = time.passed(calmMs).then(() => runFaults(world, faultSource, story, faultSettings))
  const over = async () => {
    await Promise.all([acting, ...actingToo, failing])
    if (restores > 0) for (const person of [user, ...others]) await person.repeat?.()
    isOver = true
  }
  void over()
  await time.runUntil(chaosEndsMs + 60 * minuteMs, () => isOver || isBroken())
  if (!isOver && !isBroken()) story.violated('the user or a fault has no end')
  if (!isBroken()) await settle(world, [user, ...others], story, counter, restores > 0)
  const { lines, violations } = story
  const result = { seed, story: lines, violations, simulatedMs: time.nowMs, faults, coverage: counter.counted }
  return { ...result, rule: violations[0]?.split(': ')[0] }
}

function start(world: World): void {
  for (const controller of world.controllers) controller.start()
  for (const { engine, agent } of world.nodes) {
    engine.load(image)
    agent.start()
  }
  world.recordHealth()
}

function openRules() {
  return [
    ruleOf(programsRun),
    ruleOf(acrossRestores(answeredIsStored)),
    ruleOf(acrossRestores(watchIsWhole)),
    ruleOf(onePodOfAName(isInstance)),
    ruleOf(completedStaysCompleted((pod) => pod.startsWith('sums'))),
    ruleOf(healthyIsNotEvicted),
    ruleOf(evictionsAreLimited),
    ruleOf(acrossRestores(deletedStaysDeleted)),
    ruleOf(acrossRestores(readsAreCurrent)),
    ruleOf(budgetsHold(guardedPods)),
    ruleOf(secretsStay),
    ruleOf(leaderWrites),
    ruleOf(claimDataStays),
    ruleOf(oneMachineWrites),
  ]
}

function ruleOf<S>(invariant: Invariant<S>) {
  return { name: invariant.name, meets: invariant.meets, judge: judgeOf(invariant) }
}

/** The first workloads, then changes until this time. After a restore all are made again. */
async function act(
  user: User,
  { time }: World,
  random: RandomSource,
  untilMs: number,
  restores: () => number,
): Promise<void> {
  await time.passed(minuteMs)
  await user.begin()
  let repeated = 0
  while (time.nowMs < untilMs) {
    await time.passed(random.between(5_000, 120_000))
    await user.act()
    if (repeated === restores()) continue
    repeated = restores()
    await user.repeat?.()
  }
}

/** Waits until everything is as it should be, and stays so for three looks. */
async function settle(
  world: World,
  people: readonly User[],
  story: Story,
  counter: CoverageCounter,
  isRestored: boolean,
): Promise<void> {
  const { time } = world
  counter.met(endRule)
  story.note('world', 'all faults have ended')
  const untilMs = time.nowMs + settledWithinMs
  let problems: readonly string[] = []
  for (let quiet = 0; quiet < 3; quiet = problems.length === 0 ? quiet + 1 : 0) {
    if (story.violations.length > 0) return
    if (time.nowMs >= untilMs) {
      for (const problem of problems) story.violated(`${endRule}: ${problem}`)
      return
    }
    await time.runUntil(time.nowMs + lookMs)
    problems = problemsOf(world, people, isRestored)
  }
  story.note('world', 'everything is as it should be')
}

function problemsOf({ nodes, ...world }: World, people: readonly User[], isRestored: boolean): readonly string[] {
  const rows = world.rows()
  const stored = (resource: string) =>
    rows.filter((row) => row.resource === resource).map(({ body }) => JSON.parse(body) as StoredThing)
  const machines = nodes.map(({ name, engine, disk, podFolders }) => ({
    ...{ node: name, containers: engine.containers, podFolders: podFolders(), files: disk.texts() },
  }))
  return endProblems({ wanted: people.flatMap(({ wanted }) => [...wanted.values()]), stored, machines, isRestored })
}
