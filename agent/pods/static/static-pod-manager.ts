/** Loop: the folder of manifests → the static pods of this machine. An invalid file does not affect the others. */
import type { Pod } from '../../../api/pod.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import { podPath } from '../wanted/desired-pods.ts'
import { staticPod } from './static-pods.ts'

export type ManifestFile = { readonly path: string } & (
  | { readonly content: unknown }
  /** The file cannot be read, or is neither YAML nor JSON. */
  | { readonly problem: string }
)

export interface ManifestFolder {
  /** Every manifest in the folder; empty when the folder does not exist. Rejects when it cannot be read. */
  read(): Promise<readonly ManifestFile[]>
  /** Reports changes until `signal` aborts. Resolves early when the folder cannot be watched. */
  watch(changed: () => void, signal: AbortSignal): Promise<void>
}

export type StaticPodNeeds = {
  readonly folder: ManifestFolder
  /** Called with all static pods when they change; undefined while unknown. */
  readonly onChange: (pods: readonly Pod[] | undefined) => void
  /** Records an Event of the node. */
  readonly warn: (reason: string, message: string) => void
  readonly clock: Clock
  readonly log: Log
}

export type StaticPodSettings = { readonly nodeName: string; readonly fileCheckMs: number }

export interface StaticPodManager extends Loop {
  /** Reads the folder once, before the first pods are admitted. Never rejects. */
  look(): Promise<void>
}

/** An editor writes a file in several steps: it is read after this time without a change. */
const quietMs = 150

export function staticPodManager(
  needs: StaticPodNeeds,
  { nodeName, fileCheckMs }: StaticPodSettings,
): StaticPodManager {
  const { folder, onChange, warn, clock, log } = needs
  /** By file: its last valid pod. */
  let pods: ReadonlyMap<string, Pod> | undefined
  /** By file: its problem. */
  let problems: ReadonlyMap<string, string> = new Map()
  let folderProblem: string | undefined

  const take = (files: readonly ManifestFile[]) => {
    const before = pods ?? new Map<string, Pod>()
    const { now, wrong } = readAll(files, before, podIn)
    logChanges(before, now)
    reportProblems(wrong)
    problems = wrong
    const same =
      pods !== undefined && now.size === before.size && [...now].every(([path, pod]) => before.get(path) === pod)
    pods = now
    if (!same) onChange([...now.values()])
  }

  const podIn = (path: string, content: unknown, last: Pod | undefined) => {
    const made = staticPod(content, { path, nodeName, nowWallMs: clock.wallMs() })
    if (!made.ok) return { ok: false as const, because: made.problems.join('; ') }
    return { ok: true as const, pod: last?.metadata.uid === made.pod.metadata.uid ? last : made.pod }
  }

  const logChanges = (before: ReadonlyMap<string, Pod>, now: ReadonlyMap<string, Pod>) => {
    for (const [path, pod] of now) {
      if (before.get(path) !== pod) log.info('Static pod added', { file: path, pod: podPath(pod) })
    }
    for (const [path, pod] of before) {
      if (!now.has(path)) log.info('Static pod removed', { file: path, pod: podPath(pod) })
    }
  }

  const reportProblems = (wrong: ReadonlyMap<string, string>) => {
    for (const [path, because] of wrong) {
      if (problems.get(path) === because) continue
      const remedy = 'correct the file or take it away: it is read again by itself'
      log.warn('Static pod file not used', { file: path, because, remedy })
      warn('InvalidStaticPod', `Static pod file ${path} is not used: ${because}. To fix it, ${remedy}`)
    }
  }

  const look = async () => {
    try {
      take(await folder.read())
      folderProblem = undefined
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      if (folderProblem !== message) log.warn('Static pod folder not read, its pods stay as they are', { error })
      folderProblem = message
      if (pods === undefined) onChange(undefined)
    }
  }

  return {
    name: 'static-pods',
    look,
    async run(signal) {
      while (!signal.aborted) {
        const round = new AbortController()
        const wake = alarm(clock)
        let hasChanged = false
        const changed = () => {
          hasChanged = true
          wake.ring()
        }
        // Watched again in every round: the folder may have been created or replaced.
        const watching = folder.watch(changed, round.signal)
        await look()
        await wake.sleep(fileCheckMs, signal)
        if (hasChanged) await clock.sleep(quietMs, signal)
        round.abort()
        await watching
      }
    },
  }
}

type Read = { readonly ok: true; readonly pod: Pod | undefined } | { readonly ok: false; readonly because: string }

/** By file: its pod, and its problem. */
function readAll(
  files: readonly ManifestFile[],
  before: ReadonlyMap<string, Pod>,
  podIn: (path: string, content: unknown, last: Pod | undefined) => Read,
) {
  const now = new Map<string, Pod>()
  const wrong = new Map<string, string>()
  const names = new Map<string, string>()
  for (const file of files) {
    const { path } = file
    const last = before.get(path)
    const read: Read = 'content' in file ? podIn(path, file.content, last) : { ok: false, because: file.problem }
    if (!read.ok) wrong.set(path, read.because)
    // An invalid edit does not stop a running pod.
    const pod = read.ok ? read.pod : last
    if (pod === undefined) continue
    const twin = names.get(podPath(pod))
    if (twin === undefined) now.set(path, pod)
    else wrong.set(path, `${twin} holds a pod of the same name`)
    names.set(podPath(pod), twin ?? path)
  }
  return { now, wrong }
}
