/** Drains a machine: no new pods, and its pods evicted within their disruption budgets; shows each of them. */
import { useEffect, useState } from 'preact/hooks'
import { counted } from '../../api/dashboard/view-words.ts'
import { drainVerdict } from '../../api/pod/drain-verdict.ts'
import type { Pod } from '../../api/pod.ts'
import { callApi, RefusedError, reasonOf } from './api.ts'
import { Dialog } from './dialog.tsx'

type Progress = {
  readonly key: string
  readonly state: 'waits' | 'evicted' | 'gone' | 'stays' | 'failed'
  readonly note: string
}

export type DrainProps = { readonly name: string; readonly cordon: () => Promise<unknown> }

export function DrainButton({ name, cordon }: DrainProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" class="danger" onClick={() => setOpen(true)}>
        Drain
      </button>
      {isOpen && <DrainDialog name={name} cordon={cordon} onClose={() => setOpen(false)} />}
    </>
  )
}

function DrainDialog({ name, cordon, onClose }: DrainProps & { readonly onClose: () => void }) {
  const [isRunning, setRunning] = useState(false)
  const [isForced, setForced] = useState(false)
  const [progress, setProgress] = useState<readonly Progress[]>()
  const [problem, setProblem] = useState<string>()
  const [isDone, setDone] = useState(false)
  useEffect(() => {
    if (!isRunning) return
    const leaving = new AbortController()
    drain(name, cordon, isForced, leaving.signal, setProgress).then(
      () => setDone(true),
      (error: unknown) => {
        if (!leaving.signal.aborted) setProblem(reasonOf(error))
      },
    )
    return () => leaving.abort()
  }, [isRunning])
  const rows = progress ?? []
  const moving = rows.filter(({ state }) => state !== 'stays')
  const gone = moving.filter(({ state }) => state === 'gone').length
  return (
    <Dialog title={`Drain ${name}`} onClose={onClose}>
      {!isRunning ? (
        <>
          <p>
            The machine is cordoned, and its pods are evicted within their disruption budgets. Pods of DaemonSets and
            static pods stay. Data in emptyDir volumes is deleted with the pods.
          </p>
          <label class="check">
            <input
              type="checkbox"
              checked={isForced}
              onChange={({ currentTarget }) => setForced(currentTarget.checked)}
            />
            Also evict pods that no controller creates again
          </label>
        </>
      ) : (
        <div role="status" aria-live="polite">
          <p>
            {isDone
              ? `Done: ${counted(gone, 'pod')} left the machine.`
              : progress === undefined
                ? 'Cordoning…'
                : `${gone} of ${counted(moving.length, 'pod')} left the machine.`}
          </p>
          <progress
            max={Math.max(1, moving.length)}
            value={isDone ? Math.max(1, moving.length) : gone}
            aria-label="Pods that left"
          />
          <ul class="drain">
            {rows.map(({ key, state, note }) => (
              <li
                key={key}
                class={{ waits: 'warn', evicted: 'warn', gone: 'good', stays: 'idle', failed: 'bad' }[state]}
              >
                <span class="dot" aria-hidden="true" />
                <strong>{key}</strong>
                <span class="muted">{note}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
      {problem !== undefined && (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      )}
      <div class="buttons">
        <button type="button" onClick={onClose}>
          {isDone ? 'Close' : isRunning ? 'Stop draining' : 'Cancel'}
        </button>
        {!isRunning && (
          <button type="button" class="danger solid" onClick={() => setRunning(true)}>
            Drain
          </button>
        )}
      </div>
    </Dialog>
  )
}

const againMs = 2_000

/** Resolves when every pod that is to leave has left. Evictions that a budget does not allow yet are repeated, as by kubectl. */
async function drain(
  name: string,
  cordon: () => Promise<unknown>,
  isForced: boolean,
  signal: AbortSignal,
  show: (progress: readonly Progress[]) => void,
): Promise<void> {
  await cordon()
  const state = new Map<string, Progress>()
  const set = (pod: Pod, next: Omit<Progress, 'key'>) => {
    state.set(keyOf(pod), { key: keyOf(pod), ...next })
    show([...state.values()])
  }
  const leaving = new Set<Pod>()
  for (const pod of await podsOf(name, signal)) {
    const staying = staysBecause(pod, isForced)
    if (staying === undefined) leaving.add(pod)
    else set(pod, { state: 'stays', note: staying })
  }
  for (const pod of leaving) set(pod, { state: 'waits', note: 'waits' })
  show([...state.values()])
  const evicted = new Set<Pod>()
  const advance = async (pod: Pod, isPresent: boolean) => {
    if (!isPresent) {
      set(pod, { state: 'gone', note: 'left' })
      leaving.delete(pod)
      return
    }
    if (evicted.has(pod)) return
    const refusal = await evict(pod, signal)
    if (refusal === undefined) evicted.add(pod)
    set(pod, refusal === undefined ? { state: 'evicted', note: 'is being stopped' } : { state: 'waits', note: refusal })
  }
  while (!signal.aborted) {
    const present = new Set((await podsOf(name, signal)).map(({ metadata }) => metadata.uid))
    for (const pod of leaving) await advance(pod, present.has(pod.metadata.uid))
    if (leaving.size === 0) return
    await new Promise((resolve) => setTimeout(resolve, againMs))
  }
}

/** undefined: it is evicted. */
function staysBecause(pod: Pod, isForced: boolean): string | undefined {
  const found = drainVerdict(pod)
  if (found.verdict === 'evict') return undefined
  return found.verdict === 'ask' && isForced ? undefined : found.because
}

function keyOf({ metadata }: Pod): string {
  return `${metadata.namespace}/${metadata.name}`
}

async function podsOf(name: string, signal: AbortSignal): Promise<readonly Pod[]> {
  const list = await callApi('GET', `/api/v1/pods?fieldSelector=spec.nodeName%3D${encodeURIComponent(name)}`, {
    signal,
  })
  return (list as { readonly items: readonly Pod[] }).items
}

/** Why the eviction has to be repeated; undefined: the pod is evicted, or gone. */
async function evict({ metadata: { namespace, name } }: Pod, signal: AbortSignal): Promise<string | undefined> {
  try {
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name } }
    await callApi('POST', `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, { body, signal })
    return undefined
  } catch (error) {
    if (error instanceof RefusedError && error.code === 404) return undefined
    if (error instanceof RefusedError && error.code === 429) return error.message
    if (error instanceof TypeError) return reasonOf(error)
    throw error
  }
}
