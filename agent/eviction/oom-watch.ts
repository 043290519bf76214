/** Kills of the kernel's OOM killer: the victim, and whether the machine or a control group was out of memory. */
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import type { ContainerRuntime } from '../runtime/runtime.ts'

export type OomKill = {
  readonly victim: string
  readonly pid: number
  /** The control group whose limit was reached; undefined: the machine was out of memory. */
  readonly limitOf: string | undefined
  /** The control group the victim was in. */
  readonly group: string
}

/** Parses the summary line of a kill (mm/oom_kill.c, dump_oom_victim); undefined for other lines. */
export function parseOomKill(text: string): OomKill | undefined {
  const found =
    /^oom-kill:constraint=.*,(?:global_oom|oom_memcg=(?<limitOf>[^,]*)),task_memcg=(?<group>[^,]*),task=(?<victim>.*),pid=(?<pid>\d+),uid=\d+$/.exec(
      text,
    )?.groups
  if (found === undefined) return undefined
  const { limitOf, group = '', victim = '', pid } = found
  return { victim, pid: Number(pid), limitOf: limitOf === '/' ? undefined : limitOf, group }
}

/** The kernel's log, as far as the watch reads it. */
export interface KilledLines {
  /** Receives every line from now on, and with the first read those that the kernel still holds. `ageMs`: the age of the line. */
  subscribe(listener: (line: { readonly text: string; readonly ageMs: number }) => void): void
  /** Reads the lines written until now. */
  look(): void
}

export type OomWatchNeeds = {
  readonly kernel: KilledLines
  readonly event: (event: NodeEvent) => void
  readonly clock: Clock
  readonly log: Log
}

export interface OomWatch {
  /**
   * Wraps the runtime: `oomKilled` is also true for kills by a limit outside of the container, which the engine does not detect.
   */
  withOomKills(runtime: ContainerRuntime): ContainerRuntime
}

/** The kernel's log holds fewer lines. */
const mostRemembered = 1_000

/** Subscribes to the kernel's log; create it before the log is first read. */
export function oomWatch({ kernel, event, clock, log }: OomWatchNeeds): OomWatch {
  const startedMs = clock.monotonicMs()
  const containers = new Set<string>()

  kernel.subscribe(({ text, ageMs }) => {
    const kill = text.startsWith('oom-kill:') ? parseOomKill(text) : undefined
    if (kill === undefined) return
    const id = containerOf(kill.group)
    if (id !== undefined) containers.add(id)
    const [oldest] = containers
    if (containers.size > mostRemembered && oldest !== undefined) containers.delete(oldest)
    // The previous agent reported kills from before this start.
    if (ageMs > clock.monotonicMs() - startedMs) return
    log.warn('Process killed: out of memory', { ...kill })
    if (kill.limitOf !== undefined) return
    const message = `System OOM encountered, victim process: ${kill.victim}, pid: ${kill.pid}`
    event({ type: 'Warning', reason: 'SystemOOM', message })
  })

  return {
    withOomKills: (runtime) => ({
      ...runtime,
      async listContainers(podUID) {
        const found = await runtime.listContainers(podUID)
        if (found.some(({ state, exitCode }) => state === 'exited' && exitCode === killed)) kernel.look()
        return found.map((container) =>
          container.state === 'exited' && container.exitCode === killed && containers.has(container.id)
            ? { ...container, oomKilled: true }
            : container,
        )
      },
    }),
  }
}

const killed = 128 + 9

/**
 * The container of a control group. Docker's ids have 64 digits; its drivers write `/docker/ID` and
 * `/system.slice/docker-ID.scope`.
 */
function containerOf(group: string): string | undefined {
  return /[0-9a-f]{64}/.exec(group)?.[0]
}
