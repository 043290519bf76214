/** Docker on a machine of the world: it outlives the agent, dies, hangs, answers late, and loses its programs with the power. */
import type {
  ContainerIdentity,
  ContainerOptions,
  ContainerRuntime,
  RuntimeContainer,
} from '../../agent/runtime/runtime.ts'
import { RuntimeError } from '../../agent/runtime/runtime.ts'
import { type FakeRuntime, fakeRuntime } from '../../agent/testing/fake-runtime.ts'
import type { ContainerName, Fact } from '../story/facts.ts'
import type { ProgramLife } from './life.ts'
import type { RandomSource } from './random-source.ts'
import { type SimulatedPrograms, withPrograms } from './simulated-programs.ts'
import type { SimulatedTime } from './simulated-time.ts'

export interface SimulatedEngine {
  /** As the agent with this life uses it. */
  seenBy(life: ProgramLife): ContainerRuntime
  readonly containers: readonly RuntimeContainer[]
  readonly isRunning: boolean
  /** It has this image from now on, and can pull it. */
  load(image: string): void
  /** It has no image any more, and pulls none until `load`. */
  losePulls(): void
  /** A person removes one of its containers, running or not. */
  forget(id: string): void
  /** It has no containers and no images any more. Images can be pulled. */
  loseAll(): void
  /** `keepsContainers`: as with live-restore. */
  die(keepsContainers: boolean): void
  start(): void
  /** Answers nothing until `resume`. */
  hang(): void
  resume(): void
  powerCut(): void
}

export type SimulatedEngineNeeds = {
  readonly node: string
  readonly time: SimulatedTime
  readonly random: RandomSource
  readonly record: (fact: Fact) => void
  readonly hasPower: () => boolean
  /** By default containers do what their command lines ask for, at once, and only images that were loaded are there. */
  readonly programs?: SimulatedPrograms | undefined
}

/** Deadlines of the adapter for Docker: of a question, and of what waits for a slow card. */
const deadlines = { askMs: 30_000, actMs: 120_000 }
const acts: ReadonlySet<string> = new Set([
  'runSandbox',
  'createContainer',
  'startContainer',
  'removeContainer',
  'pullImage',
])

export function simulatedEngine({
  node,
  time,
  random,
  record,
  hasPower,
  programs,
}: SimulatedEngineNeeds): SimulatedEngine {
  const clock = {
    monotonicMs: () => time.nowMs,
    wallMs: () => time.beganMs + time.nowMs,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        const cancel = time.after(ms, resolve)
        const stop = () => {
          cancel()
          resolve()
        }
        signal?.addEventListener('abort', stop, { once: true })
      }),
  }
  const engine = fakeRuntime(clock)
  const observe = observer(engine, { node, time, record })
  let isRunning = true
  const calls = callTimes(time, random)

  return {
    seenBy(life) {
      const runtime = engine.asSeenBy(node)
      const own = programs === undefined ? runtime : withPrograms(engine, runtime, { time, programs })
      return proxied(own, (method, args, work) => {
        if (method === 'watch') return life.within(() => watched(own, life, args))
        const graceMs = method === 'stopContainer' ? Number(args[1]) * 1000 : 0
        return life.within(() => calls.during(method, graceMs, () => work().finally(observe)))
      })
    },
    get containers() {
      return engine.containers
    },
    get isRunning() {
      return isRunning && !calls.isHanging
    },
    load(image) {
      engine.images.add(image)
      engine.registry.add(image)
    },
    losePulls() {
      engine.images.clear()
      engine.registry.clear()
    },
    forget(id) {
      const { identity } = engine.containers.find((one) => one.id === id) ?? {}
      if (identity?.kind === 'container') record({ kind: 'forgotten', ...nameOf(node, id, identity) })
      engine.lose(id)
      observe()
    },
    loseAll() {
      for (const { id } of engine.containers) engine.lose(id)
      engine.images.clear()
      observe()
    },
    die(keepsContainers) {
      isRunning = false
      calls.resume()
      engine.setReachable(false)
      if (keepsContainers) return
      for (const { id, state } of engine.containers) if (state === 'running') engine.exit(id, 137)
      observe()
    },
    start() {
      if (isRunning || !hasPower()) return
      isRunning = true
      engine.setReachable(true)
    },
    hang: calls.hang,
    resume: calls.resume,
    powerCut() {
      isRunning = false
      calls.resume()
      engine.setReachable(false)
      engine.powerCut()
      observe()
    },
  }
}

/** How long calls take: at most as long as the adapter for Docker waits. */
function callTimes(time: SimulatedTime, random: RandomSource) {
  let hanging: { readonly over: Promise<void>; readonly end: () => void } | undefined

  /** Returns when the engine goes on in time. Else what was asked may be done all the same, and the caller gets no answer. */
  const answeredLate = async (method: string, ms: number, over: Promise<void>, work: () => Promise<unknown>) => {
    const isInTime = await Promise.race([over.then(() => true), time.passed(ms).then(() => false)])
    if (isInTime) return
    if (acts.has(method) && random.isTrue(0.5)) void over.then(work).catch(() => undefined)
    throw new RuntimeError('Unreachable', `${method}: Docker did not answer within ${ms / 1000} s`)
  }

  return {
    get isHanging() {
      return hanging !== undefined
    },
    async during<T>(method: string, graceMs: number, work: () => Promise<T>): Promise<T> {
      await time.passed(acts.has(method) ? random.between(30, 800) : random.between(1, 30))
      const deadlineMs = (acts.has(method) ? deadlines.actMs : deadlines.askMs) + graceMs
      if (hanging !== undefined) await answeredLate(method, deadlineMs, hanging.over, work)
      return work()
    },
    hang() {
      if (hanging !== undefined) return
      let end = () => {}
      const over = new Promise<void>((resolve) => {
        end = resolve
      })
      hanging = { over, end }
    },
    resume() {
      hanging?.end()
      hanging = undefined
    },
  }
}

/** Events reach the agent while it runs. */
function watched(runtime: ContainerRuntime, life: ProgramLife, args: readonly unknown[]): Promise<never> {
  const [listener, signal] = args as Parameters<ContainerRuntime['watch']>
  const own: typeof listener = {
    opened: () => life.whenRunning(() => listener.opened()),
    changed: (podUID) => life.whenRunning(() => listener.changed(podUID)),
  }
  return runtime.watch(own, signal) as Promise<never>
}

type Call = (method: string, args: readonly unknown[], work: () => Promise<never>) => Promise<unknown>

/** The runtime with each call made by `call`. */
function proxied(runtime: ContainerRuntime, call: Call): ContainerRuntime {
  return new Proxy(runtime, {
    get(target, method) {
      const own: unknown = Reflect.get(target, method)
      if (typeof own !== 'function') return own
      return (...args: readonly unknown[]) =>
        call(String(method), args, () => Reflect.apply(own, target, args) as Promise<never>)
    },
  })
}

/** What the programs of containers do: `work SECONDS CODE` ends by itself. Records starts and ends. */
function observer(engine: FakeRuntime, { node, time, record }: Pick<SimulatedEngineNeeds, 'node' | 'time' | 'record'>) {
  const running = new Map<string, ContainerName>()
  const observe = () => {
    const present = new Map(engine.containers.map((one) => [one.id, one]))
    for (const [id, name] of running) {
      const now = present.get(id)
      if (now?.state === 'running') continue
      running.delete(id)
      record({ kind: 'ended', ...name, exitCode: now?.exitCode ?? 137 })
    }
    for (const { id, state, identity } of present.values()) {
      if (state !== 'running' || running.has(id) || identity.kind === 'sandbox') continue
      const name = nameOf(node, id, identity)
      running.set(id, name)
      record({ kind: 'started', ...name })
      const work = workOf(engine.optionsOf(id))
      if (work === undefined) continue
      time.after(work.seconds * 1000, () => {
        if (running.get(id) !== name) return
        engine.exit(id, work.exitCode)
        observe()
      })
    }
  }
  return observe
}

function nameOf(node: string, id: string, { podName, podUID, containerName }: ContainerIdentity): ContainerName {
  return { node, pod: podName, podUID, container: containerName, id }
}

function workOf(
  options: ContainerOptions | undefined,
): { readonly seconds: number; readonly exitCode: number } | undefined {
  const [program, seconds, exitCode] = options?.command ?? []
  return program === 'work' ? { seconds: Number(seconds), exitCode: Number(exitCode) } : undefined
}
