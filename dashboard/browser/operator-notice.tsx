/** What an operator has asked of the whole fleet by a ConfigMap: how far it is, and a button that pauses or resumes it. */
import type { ConfigMap } from '../../api/config-map.ts'
import type { UrgencyLevel } from '../../api/dashboard/node-view.ts'
import { callApi, mergePatchType } from './api.ts'
import { Action } from './dialog.tsx'
import { useNow } from './fleet-stream.ts'
import { useLoaded, useMay } from './hooks.ts'

type Changes = { readonly [field: string]: string | null }
type Question = { readonly title: string; readonly question: string }

/** Constant for each kind of notice. */
export type OperatorMap = {
  readonly key: { readonly namespace: string; readonly name: string }
  readonly label: string
  readonly pauses: { pause(why: string): Changes; resume(now: string): Changes }
  /** Undefined: nothing was asked. */
  view(map: ConfigMap): NoticeView | undefined
}

export type NoticeView = {
  readonly title: string
  readonly level: UrgencyLevel
  readonly text: string
  readonly lines: readonly string[]
  /** What an operator may do with it, and what is asked before. */
  readonly action: 'pause' | 'resume' | undefined
  readonly pause: Question
  readonly resume: Question
}

/** The controller decides when nodes report, at most once a second. */
const everySeconds = 15

type ConfigMaps = { readonly items: readonly ConfigMap[] }

export function OperatorNotice({ of }: { readonly of: OperatorMap }) {
  const now = useNow()
  const { namespace, name } = of.key
  const mayRead = useMay({ verb: 'list', resource: 'configmaps', namespace, name })
  // As a list: that there is none is not an error.
  const path = `${folderOf(of)}?fieldSelector=metadata.name%3D${name}`
  const { value } = useLoaded<ConfigMaps>(mayRead ? path : undefined, Math.floor(now / everySeconds))
  const map = value?.items[0]
  const view = map && of.view(map)
  if (view === undefined) return null
  const { title, level, text, lines } = view
  return (
    <section class={`notice ${level}`} aria-label={of.label}>
      <span>
        <strong>{title}</strong> {text}
        {lines.map((line, at) => (
          <span key={`${at} ${line}`} class="why">
            {line}
          </span>
        ))}
      </span>
      <PauseButton of={of} view={view} />
    </section>
  )
}

function PauseButton({ of, view }: { readonly of: OperatorMap; readonly view: NoticeView }) {
  const mayPatch = useMay({ verb: 'patch', resource: 'configmaps', ...of.key })
  const { action } = view
  if (!mayPatch || action === undefined) return null
  const isPause = action === 'pause'
  const act = () =>
    change(of, isPause ? of.pauses.pause('Paused on the dashboard') : of.pauses.resume(new Date().toISOString()))
  return (
    <span class="buttons">
      <Action name={isPause ? 'Pause' : 'Resume'} {...view[action]} act={act} />
    </span>
  )
}

function folderOf({ key: { namespace } }: OperatorMap): string {
  return `/api/v1/namespaces/${namespace}/configmaps`
}

function change(of: OperatorMap, data: Changes): Promise<unknown> {
  return callApi('PATCH', `${folderOf(of)}/${of.key.name}`, { type: mergePatchType, body: { data } })
}
