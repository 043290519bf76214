/** Deployments, StatefulSets and DaemonSets, with what can be done with them. */
import { useState } from 'preact/hooks'
import type { WorkloadCard } from '../../api/dashboard/dashboard-messages.ts'
import { compareNames } from '../../api/dashboard/node-view.ts'
import { counted, duration, isFound } from '../../api/dashboard/view-words.ts'
import type { Place } from '../model/places.ts'
import { callApi, mergePatchType } from './api.ts'
import { Action } from './dialog.tsx'
import { useFleet, useNow } from './fleet-stream.ts'
import { useMay } from './hooks.ts'
import { VirtualList } from './virtual-list.tsx'

export function WorkloadsView({ place }: { readonly place: Extract<Place, { readonly search: string }> }) {
  const { fleet } = useFleet()
  const now = useNow()
  const shown = [...fleet.workloads.values()]
    .filter(({ kind, namespace, name }) => isFound(place.search, [kind, namespace, name]))
    .sort(
      (a, b) =>
        Number(isDone(a)) - Number(isDone(b)) || compareNames(a.namespace, b.namespace) || compareNames(a.name, b.name),
    )
  if (fleet.rights?.workloads === false) return <p class="empty">You may not list the workloads of any namespace.</p>
  return (
    <>
      <div class="lead">
        <h1>{counted(fleet.workloads.size, 'workload')}</h1>
      </div>
      <VirtualList
        label="Workloads"
        items={shown}
        keyOf={({ kind, namespace, name }) => `${kind}/${namespace}/${name}`}
        rowHeight={60}
        row={(workload) => <WorkloadRow workload={workload} now={now} />}
      />
      {fleet.isComplete && shown.length === 0 && (
        <p class="empty">No Deployment, StatefulSet or DaemonSet{place.search === '' ? ' exists' : ' matches'}.</p>
      )}
    </>
  )
}

function isDone({ wanted, ready, updated, why }: WorkloadCard): boolean {
  return ready >= wanted && updated >= wanted && why === undefined
}

function WorkloadRow({ workload, now }: { readonly workload: WorkloadCard; readonly now: number }) {
  const { kind, namespace, name, wanted, ready, updated, created, why } = workload
  return (
    <div class={`row ${isDone(workload) ? 'good' : why === undefined ? 'warn' : 'bad'}`}>
      <span class="dot" aria-hidden="true" />
      <span class="main">
        <a href={`#/pods?q=${encodeURIComponent(name)}&namespace=${encodeURIComponent(namespace)}`}>
          <strong>{name}</strong>
        </a>{' '}
        <span class="muted">
          {kind} in {namespace}
        </span>
        {why !== undefined && <span class="why">{why}</span>}
      </span>
      <span class="cell-status">
        {ready} of {wanted} ready
        {updated < wanted && <span class="muted"> {updated} updated</span>}
      </span>
      <span class="cell-small">{created === undefined ? '' : duration(now - created)}</span>
      <Actions workload={workload} />
    </div>
  )
}

function pathOf({ kind, namespace, name }: WorkloadCard): string {
  return `/apis/apps/v1/namespaces/${namespace}/${kind.toLowerCase()}s/${name}`
}

function Actions({ workload }: { readonly workload: WorkloadCard }) {
  const { kind, namespace, name, wanted } = workload
  const place = { verb: 'patch', group: 'apps', resource: `${kind.toLowerCase()}s`, namespace, name }
  const mayPatch = useMay(place)
  const mayScale = useMay(kind === 'DaemonSet' ? undefined : { ...place, subresource: 'scale' })
  const [replicas, setReplicas] = useState<number>()
  const count = replicas ?? wanted
  return (
    <span class="buttons">
      {mayScale && (
        <Action
          name="Scale"
          title={`Scale ${name}`}
          question={
            <label>
              Replicas{' '}
              <input
                type="number"
                min={0}
                max={10_000}
                value={count}
                onInput={({ currentTarget }) => setReplicas(Math.max(0, Math.trunc(currentTarget.valueAsNumber || 0)))}
              />
            </label>
          }
          act={() =>
            callApi('PATCH', `${pathOf(workload)}/scale`, { type: mergePatchType, body: { spec: { replicas: count } } })
          }
        />
      )}
      {mayPatch && (
        <Action
          name="Restart"
          title={`Restart ${name}?`}
          question={`A rollout replaces all pods of the ${kind} ${name}, by its strategy.`}
          act={() => callApi('PATCH', pathOf(workload), { type: mergePatchType, body: restart(new Date()) })}
        />
      )}
    </span>
  )
}

/** As `kubectl rollout restart` writes it. */
function restart(now: Date) {
  const annotations = { 'kubectl.kubernetes.io/restartedAt': `${now.toISOString().slice(0, 19)}Z` }
  return { spec: { template: { metadata: { annotations } } } }
}
