/** How far the rollout of a release of the agent is, with what an operator can do about it. */
import type { ConfigMap } from '../../api/config-map.ts'
import { rolloutKey, rolloutPath, rolloutPauses } from '../../api/node/agent-rollout.ts'
import { type RolloutView, rolloutView } from '../model/rollout-view.ts'
import { callApi, mergePatchType } from './api.ts'
import { Action } from './dialog.tsx'
import { useNow } from './fleet-stream.ts'
import { useLoaded, useMay } from './hooks.ts'

const onMap = { resource: 'configmaps', namespace: rolloutKey.namespace, name: rolloutKey.name }
/** The controller decides when nodes report, at most once a second. */
const everySeconds = 15
/** As a list: that there is no rollout is not an error. */
const listPath = `/api/v1/namespaces/${rolloutKey.namespace}/configmaps?fieldSelector=metadata.name%3D${rolloutKey.name}`

type ConfigMaps = { readonly items: readonly ConfigMap[] }

export function RolloutNotice() {
  const now = useNow()
  const mayRead = useMay({ verb: 'list', ...onMap })
  const { value } = useLoaded<ConfigMaps>(mayRead ? listPath : undefined, Math.floor(now / everySeconds))
  const map = value?.items[0]
  const view = map && rolloutView(map)
  return view === undefined ? null : <Notice view={view} />
}

function Notice({ view }: { readonly view: RolloutView }) {
  const { version, level, text, rings, stragglers } = view
  return (
    <section class={`notice ${level}`} aria-label="Rollout of the agent">
      <span>
        <strong>Agent {version}</strong> {text}
        {rings.map((ring) => (
          <span key={ring} class="why">
            Ring {ring}
          </span>
        ))}
        {stragglers !== '' && <span class="why">Not waited for: {stragglers}</span>}
      </span>
      <PauseButton view={view} />
    </section>
  )
}

function PauseButton({ view: { version, action } }: { readonly view: RolloutView }) {
  const mayPatch = useMay({ verb: 'patch', ...onMap })
  if (!mayPatch || action === undefined) return null
  return (
    <span class="buttons">
      {action === 'pause' ? (
        <Action
          name="Pause"
          title={`Pause the rollout of ${version}?`}
          question="Machines that have not begun no longer may take the release. Those that have it keep it."
          act={() => change(rolloutPauses.pause('Paused on the dashboard'))}
        />
      ) : (
        <Action
          name="Resume"
          title={`Resume the rollout of ${version}?`}
          question="Failures until now no longer count."
          act={() => change(rolloutPauses.resume(new Date().toISOString()))}
        />
      )}
    </span>
  )
}

function change(data: { readonly [field: string]: string | null }): Promise<unknown> {
  return callApi('PATCH', rolloutPath, { type: mergePatchType, body: { data } })
}
