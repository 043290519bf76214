/** Runs a fleet in simulated time, first until it is as wanted, then through a story, and gives what the story does to it. */
import type { ContainerIdentity } from '../../agent/runtime/runtime.ts'
import { measureTurnsBy } from '../../daemon/limits/turn-limit.ts'
import { openStory } from '../story/story.ts'
import { beginLife } from '../world/life.ts'
import { randomSource } from '../world/random-source.ts'
import { type SimulatedTime, simulatedTime } from '../world/simulated-time.ts'
import type { StoreContents } from '../world/store-file.ts'
import { openWorld, type World } from '../world/world.ts'
import { type ForecastView, fleetView } from './fleet-view.ts'
import type { PlacedObject } from './manifests.ts'
import { type Outlook, type OutlookCounter, outlookCounter, type Sight } from './outlook.ts'
import { forecastPerson, type Person } from './person.ts'
import type { SimulationPlan } from './simulation-file.ts'
import { planStory } from './story-acts.ts'

export type ForecastSettings = {
  readonly seed: number
  readonly plan: SimulationPlan
  readonly objects: readonly PlacedObject[]
  /** What the store has at the beginning, and when that was. */
  readonly backup: { readonly contents: StoreContents; readonly madeMs: number } | undefined
  /** Called with each simulated minute. */
  readonly progress: (progress: ForecastProgress) => void
  readonly signal: AbortSignal
}

/** `of`: how long the part takes, or at most. */
export type ForecastProgress = {
  readonly part: 'the fleet starts' | 'the story'
  readonly minute: number
  readonly of: number
}

export type Forecast = Outlook & {
  readonly seed: number
  /** Kinds of manifests that the simulation does not have. */
  readonly leftOut: readonly string[]
}

/** The API of the simulated fleet does not accept objects: one sentence each. */
export class RefusedObjectsError extends Error {
  override readonly name = 'RefusedObjectsError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`The API does not accept:\n${problems.map((problem) => `  ${problem}`).join('\n')}`)
    this.problems = problems
  }
}

const minuteMs = 60_000
const lookMs = 10_000
/** Machines register, and pods start, within this time; what is not ready then stays so in the story. */
const startMs = { machines: 10 * minuteMs, manifests: 60 * minuteMs, pods: 20 * minuteMs }

/** Rejects with RefusedObjectsError, and where a program ends by itself. */
export async function runForecast(settings: ForecastSettings): Promise<Forecast> {
  const stopMeasuring = measureTurnsBy(() => 0)
  try {
    return await forecast(settings)
  } finally {
    stopMeasuring()
  }
}

async function forecast({ seed, plan, objects, backup, progress, signal }: ForecastSettings): Promise<Forecast> {
  const time = simulatedTime(backup?.madeMs)
  const random = randomSource(seed)
  const view = fleetView()
  let outlook: OutlookCounter | undefined
  let zeroMs = 0
  const crashes: string[] = []
  const observe: Parameters<typeof openStory>[1][number] = (fact) => {
    if (fact.kind === 'crashed') crashes.push(`${fact.program}: ${fact.because}`)
    const changes = view.take(fact)
    outlook?.take(time.nowMs - zeroMs, changes)
    return undefined
  }
  const story = openStory(time, [observe])
  const note = (text: string) => outlook?.note(time.nowMs - zeroMs, text)
  const world = openWorld({
    ...{ time, random: random.fork(), story, machines: plan.machines, controllers: 1 },
    programs: programsOf(plan, view),
    ...(backup !== undefined && { contents: backup.contents }),
  })
  if (backup !== undefined)
    view.take({ kind: 'restored', rows: backup.contents.rows, version: backup.contents.reserved })
  const place = { life: beginLife({ time, random: random.fork().next }), machine: 'person' }
  const person = forecastPerson({ place, api: world.api, note })
  const pass = passing(time, crashes, signal)

  const leftOut = await started({ world, view, person, objects, pass, progress })
  zeroMs = time.nowMs
  outlook = outlookCounter(
    plan.machines.map(({ name }) => name),
    sightOf(view),
  )
  planStory(plan.story, { world, note: (text) => void note(text), drain: person.drain })
  const of = Math.ceil(plan.durationMs / minuteMs)
  for (let minute = 1; minute <= of; minute++) {
    await pass(Math.min(zeroMs + plan.durationMs, zeroMs + minute * minuteMs))
    progress({ part: 'the story', minute, of })
  }
  return { ...outlook.end(plan.durationMs, sightOf(view)), seed, leftOut }
}

type Pass = (ms: number, isOver?: () => boolean) => Promise<void>

/** Rejects where a program ended by itself, and when `signal` aborts. */
function passing(time: SimulatedTime, crashes: readonly string[], signal: AbortSignal): Pass {
  return async (ms, isOver = () => false) => {
    await time.runUntil(ms, () => isOver() || crashes.length > 0 || signal.aborted)
    signal.throwIfAborted()
    const [crash] = crashes
    if (crash !== undefined) throw new Error(`A program of the simulation ended by itself. ${crash}`)
  }
}

type Starting = {
  readonly world: World
  readonly view: ForecastView
  readonly person: Person
  readonly objects: readonly PlacedObject[]
  readonly pass: Pass
  readonly progress: ForecastSettings['progress']
}

/** Returns when all pods are ready, or when they had time to be. The kinds that were left out. */
async function started({ world, view, person, objects, pass, progress }: Starting): Promise<readonly string[]> {
  const { time } = world
  for (const controller of world.controllers) controller.start()
  for (const { agent } of world.nodes) agent.start()
  await pass(startMs.machines, () => view.readyMachines.length === world.nodes.length)
  let applied: Awaited<ReturnType<Person['apply']>> | undefined
  void person.apply(objects).then((result) => {
    applied = result
  })
  await pass(time.nowMs + startMs.manifests, () => applied !== undefined)
  if (applied === undefined) throw new Error('The API of the simulation did not accept all manifests within an hour')
  const { refused, leftOut } = applied
  if (refused.length > 0) throw new RefusedObjectsError(refused)
  const fromMs = time.nowMs
  const of = startMs.pods / minuteMs
  for (let quiet = 0; quiet < 3 && time.nowMs < fromMs + startMs.pods; ) {
    await pass(time.nowMs + lookMs)
    const isAsWanted = view.workloads.every(({ kind, ready, wanted }) => kind === 'Job' || ready === wanted)
    quiet = isAsWanted ? quiet + 1 : 0
    progress({ part: 'the fleet starts', minute: Math.floor((time.nowMs - fromMs) / minuteMs), of })
  }
  return leftOut
}

function sightOf(view: ForecastView): Sight {
  return { workloads: view.workloads, pods: view.podsByMachine(), problemsOf: view.problemsOf }
}

const initSeconds = 2

/** Containers serve, but those that are to complete: of pods that are not started again, and most init containers. */
function programsOf({ containers }: SimulationPlan, view: ForecastView) {
  const { pull, start, stop, work } = containers
  const workSeconds = ({ podUID, containerName }: ContainerIdentity) => {
    const { initContainers = [], restartPolicy = 'Always' } = view.podOf(podUID)?.spec ?? {}
    const init = initContainers.find(({ name }) => name === containerName)
    if (init !== undefined) return init.restartPolicy === 'Always' ? undefined : initSeconds
    return restartPolicy === 'Always' ? undefined : work / 1000
  }
  return { pullMs: pull, startMs: start, stopMs: stop, workSeconds }
}
