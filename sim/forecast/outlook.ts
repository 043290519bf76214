/** What a story does to a fleet: a time line, and figures for each workload and machine. */
import type { ViewChange, WorkloadState } from './pod-changes.ts'
import { textOfWorkload } from './workload-owners.ts'

export type TimeLine = { readonly atMs: number; readonly text: string }

export type WorkloadOutlook = {
  /** `Deployment default/web` */
  readonly workload: string
  readonly wanted: number
  readonly readyAtEnd: number
  /** The fewest, and when they were so few first. */
  readonly readyLeast: number
  readonly readyLeastAtMs: number
  readonly runningLeast: number
  /** For how long fewer pods were ready than wanted. */
  readonly belowWantedMs: number
  /** Pods that were placed on a machine since the beginning of the story. */
  readonly placed: number
  /** Why it has fewer pods than wanted at the end, where that is known. */
  readonly problems: readonly string[]
}

export type MachineOutlook = {
  readonly machine: string
  readonly podsAtBeginning: number
  readonly podsAtEnd: number
  readonly evicted: number
  readonly firstEvictedAtMs: number | undefined
  /** `toMs` undefined: until the end. */
  readonly notReady: readonly { readonly fromMs: number; readonly toMs: number | undefined }[]
}

export type Outlook = {
  readonly durationMs: number
  readonly lines: readonly TimeLine[]
  readonly workloads: readonly WorkloadOutlook[]
  readonly machines: readonly MachineOutlook[]
}

/** What is seen at the beginning and at the end of the story. */
export type Sight = {
  readonly workloads: readonly WorkloadState[]
  readonly pods: ReadonlyMap<string, number>
  readonly problemsOf: (workload: WorkloadState) => readonly string[]
}

export interface OutlookCounter {
  /** Times are from the beginning of the story. */
  take(atMs: number, changes: readonly ViewChange[]): void
  note(atMs: number, text: string): void
  end(atMs: number, sight: Sight): Outlook
}

type Figures = {
  state: WorkloadState
  sinceMs: number
  least: { readonly ready: number; readonly atMs: number }
  runningLeast: number
  belowMs: number
  placed: number
}
type MachineFigures = {
  evicted: number
  firstEvictedAtMs: number | undefined
  notReady: { readonly fromMs: number; readonly toMs: number | undefined }[]
}

/** `machines`: all of the fleet. A workload that is not there at the beginning is counted from when it is. */
export function outlookCounter(machines: readonly string[], beginning: Sight): OutlookCounter {
  const lines: (TimeLine & { readonly workload?: string })[] = []
  const figures = new Map(beginning.workloads.map((state) => [textOfWorkload(state), figuresOf(state, 0)]))
  const ofMachine = new Map<string, MachineFigures>(
    machines.map((name) => [name, { evicted: 0, firstEvictedAtMs: undefined, notReady: [] }]),
  )
  const note = (atMs: number, text: string) => void lines.push({ atMs, text })
  const noteOf = (workload: string, atMs: number, text: string) =>
    void lines.push({ atMs, text: `${workload}: ${text}`, workload })
  /** What was noted of each workload last. */
  const unplaced = new Map<string, string>()

  const takeWorkload = (atMs: number, state: WorkloadState) => {
    const name = textOfWorkload(state)
    const found = figures.get(name)
    if (found === undefined) {
      figures.set(name, figuresOf(state, atMs))
      return
    }
    const { state: before } = found
    count(found, atMs)
    found.state = state
    if (state.ready < found.least.ready) found.least = { ready: state.ready, atMs }
    found.runningLeast = Math.min(found.runningLeast, state.running)
    if (before.ready === state.ready && before.wanted === state.wanted) return
    if (state.wanted === 0 && state.ready === 0) return
    if (state.kind !== 'Job') noteOf(name, atMs, `${state.ready} of ${state.wanted} ready`)
    else if (state.ready >= state.wanted) noteOf(name, atMs, 'completed')
  }
  const takeMachine = (atMs: number, machine: string, isReady: boolean) => {
    note(atMs, `machine ${machine}: ${isReady ? 'Ready' : 'NotReady'}`)
    const own = ofMachine.get(machine)
    const open = own?.notReady.at(-1)
    if (!isReady) own?.notReady.push({ fromMs: atMs, toMs: undefined })
    else if (open !== undefined && open.toMs === undefined) own?.notReady.splice(-1, 1, { ...open, toMs: atMs })
  }
  const takeOne = (atMs: number, change: ViewChange) => {
    switch (change.kind) {
      case 'workload':
        return takeWorkload(atMs, change.workload)
      case 'machine':
        return takeMachine(atMs, change.machine, change.isReady)
      case 'placed': {
        const name = textOfWorkload(change.workload)
        unplaced.delete(name)
        const found = figures.get(name)
        if (change.isBroughtBack) return note(atMs, `pod ${change.pod}: ${change.machine} reports that it runs it`)
        if (found !== undefined) found.placed += 1
        if (change.workload.kind !== 'Job') note(atMs, `pod ${change.pod}: placed on ${change.machine}`)
        return
      }
      case 'evicted': {
        const own = ofMachine.get(change.machine)
        if (own !== undefined) {
          own.evicted += 1
          own.firstEvictedAtMs ??= atMs
        }
        return note(atMs, `pod ${change.pod}: evicted from ${change.machine} (${change.because})`)
      }
      case 'unplaced': {
        const name = textOfWorkload(change.workload)
        if (unplaced.get(name) === change.because) return
        unplaced.set(name, change.because)
        return note(atMs, `pod ${change.pod}: no machine for it (${change.because})`)
      }
    }
  }

  return {
    note,
    take(atMs, changes) {
      for (const change of changes) takeOne(atMs, change)
    },
    end(atMs, { workloads, pods, problemsOf }) {
      for (const one of figures.values()) count(one, atMs)
      // One that came and went is not of interest, as a pod until its owner has adopted it.
      const lasting = new Set([...beginning.workloads, ...workloads].map(textOfWorkload))
      const kept = [...figures].filter(([name]) => lasting.has(name))
      const isShown = (workload: string | undefined) => workload === undefined || lasting.has(workload)
      return {
        durationMs: atMs,
        lines: lines.filter(({ workload }) => isShown(workload)).map(({ atMs: at, text }) => ({ atMs: at, text })),
        workloads: kept.map(([workload, one]) => workloadOutlook(workload, one, problemsOf(one.state))),
        machines: [...ofMachine].map(([machine, own]) => ({
          ...{ machine, ...own },
          podsAtBeginning: beginning.pods.get(machine) ?? 0,
          podsAtEnd: pods.get(machine) ?? 0,
        })),
      }
    },
  }
}

/** Jobs are not meant: their pods are over. */
export function isBelow({ workload, readyAtEnd, wanted }: WorkloadOutlook): boolean {
  return !workload.startsWith('Job ') && readyAtEnd < wanted
}

function figuresOf(state: WorkloadState, atMs: number): Figures {
  const least = { ready: state.ready, atMs }
  return { state, sinceMs: atMs, least, runningLeast: state.running, belowMs: 0, placed: 0 }
}

function count(figures: Figures, atMs: number): void {
  const { state, sinceMs } = figures
  if (state.ready < state.wanted) figures.belowMs += atMs - sinceMs
  figures.sinceMs = atMs
}

function workloadOutlook(
  workload: string,
  { state, least, runningLeast, belowMs, placed }: Figures,
  problems: readonly string[],
): WorkloadOutlook {
  return {
    ...{ workload, wanted: state.wanted, readyAtEnd: state.ready, readyLeast: least.ready, readyLeastAtMs: least.atMs },
    ...{ runningLeast, belowWantedMs: belowMs, placed, problems: state.ready < state.wanted ? problems : [] },
  }
}
