/** One pod: its containers, events, logs as they come, and a shell. */
import { useState } from 'preact/hooks'
import type { PodCard } from '../../api/dashboard/dashboard-messages.ts'
import { podLevel } from '../../api/dashboard/pod-view.ts'
import { duration } from '../../api/dashboard/view-words.ts'
import type { ContainerStatus, Pod } from '../../api/pod.ts'
import { hrefOf } from '../model/places.ts'
import { callApi } from './api.ts'
import { Action } from './dialog.tsx'
import { EventList } from './events-view.tsx'
import { useFleet, useNow } from './fleet-stream.ts'
import { useLoaded, useMay } from './hooks.ts'
import { LogView } from './log-view.tsx'
import { Shell } from './shell.tsx'

export type PodPageProps = { readonly namespace: string; readonly name: string }

export function PodPage({ namespace, name }: PodPageProps) {
  const { fleet } = useFleet()
  const card = fleet.pods.get(`${namespace}/${name}`)
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`
  const { value: pod, problem } = useLoaded<Pod>(path, card?.version)
  const events = [...fleet.events.values()]
    .filter((event) => event.object === `Pod/${name}` && event.namespace === namespace)
    .sort((a, b) => b.at - a.at)
  const mayDelete = useMay({ verb: 'delete', resource: 'pods', namespace, name })
  if (card === undefined) {
    return <p class="empty">{fleet.isComplete ? `There is no pod ${name} in ${namespace}.` : 'Loading…'}</p>
  }
  return (
    <article class="page">
      <nav class="crumbs" aria-label="Path">
        <a href="#/pods">Pods</a>
        <a href={`#/pods?namespace=${encodeURIComponent(namespace)}`}>{namespace}</a>
      </nav>
      <div class="lead">
        <h1>
          {name}
          <span class={`verdict ${podLevel(card)}`}>{card.status}</span>
        </h1>
        {mayDelete && (
          <div class="buttons">
            <Action
              name="Delete"
              title={`Delete ${name}?`}
              question={
                card.owner === undefined
                  ? 'No controller creates it again.'
                  : `Its containers are stopped. ${card.owner} creates another pod if it is to have one.`
              }
              act={() => deletePod(path, pod)}
              isDangerous
            />
          </div>
        )}
      </div>
      {card.why !== undefined && <p class={`notice ${podLevel(card)}`}>{card.why}</p>}
      {problem !== undefined && <p class="notice warn">{problem}</p>}
      <PodFacts card={card} pod={pod} />
      {pod !== undefined && <Containers pod={pod} path={path} namespace={namespace} name={name} />}
      {events.length > 0 && (
        <section>
          <h2>Events</h2>
          <EventList events={events} />
        </section>
      )}
    </article>
  )
}

/** Only this pod: another one of the same name may exist by now, also when the request is repeated. */
function deletePod(path: string, pod: Pod | undefined): Promise<unknown> {
  const uid = pod?.metadata.uid
  if (uid === undefined) return callApi('DELETE', path)
  return callApi('DELETE', path, { body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid } } })
}

function PodFacts({ card, pod }: { readonly card: PodCard; readonly pod: Pod | undefined }) {
  const now = useNow()
  return (
    <dl class="fact-list">
      <div>
        <dt>Machine</dt>
        <dd>
          {card.node === undefined ? 'None yet' : <a href={hrefOf({ view: 'node', name: card.node })}>{card.node}</a>}
        </dd>
      </div>
      <div>
        <dt>Ready</dt>
        <dd>{card.ready}</dd>
      </div>
      <div>
        <dt>Restarts</dt>
        <dd>{card.restarts ?? 0}</dd>
      </div>
      <div>
        <dt>Age</dt>
        <dd>{card.created === undefined ? '–' : duration(now - card.created)}</dd>
      </div>
      <div>
        <dt>Owner</dt>
        <dd>{card.owner ?? 'None'}</dd>
      </div>
      {pod?.status?.podIP && (
        <div>
          <dt>Address</dt>
          <dd>{pod.status.podIP}</dd>
        </div>
      )}
    </dl>
  )
}

type Tool = { readonly is: 'logs' | 'shell'; readonly container: string }

function Containers({ pod, path, namespace, name }: PodPageProps & { readonly pod: Pod; readonly path: string }) {
  const [tool, setTool] = useState<Tool>()
  const mayLog = useMay({ verb: 'get', resource: 'pods', subresource: 'log', namespace, name })
  // A WebSocket begins with GET.
  const mayExec = useMay({ verb: 'get', resource: 'pods', subresource: 'exec', namespace, name })
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {}
  const statuses = new Map([...initContainerStatuses, ...containerStatuses].map((status) => [status.name, status]))
  const specs = [...(pod.spec.initContainers ?? []), ...pod.spec.containers]
  const toggle = (next: Tool) => setTool(tool?.is === next.is && tool.container === next.container ? undefined : next)
  const isPressed = (is: Tool['is'], container: string) => tool?.is === is && tool.container === container
  return (
    <section>
      <h2>Containers</h2>
      <ul class="containers">
        {specs.map(({ name: container, image }) => {
          const status = statuses.get(container)
          const { level, words } = containerWords(status)
          return (
            <li key={container} class={level}>
              <span class="dot" aria-hidden="true" />
              <span class="main">
                <strong>{container}</strong> <span class="muted">{image}</span>
                <span class="why">{words}</span>
              </span>
              <span class="buttons">
                {mayLog && (
                  <button
                    type="button"
                    aria-pressed={isPressed('logs', container)}
                    onClick={() => toggle({ is: 'logs', container })}
                  >
                    Logs
                  </button>
                )}
                {mayExec && status?.state?.running !== undefined && (
                  <button
                    type="button"
                    aria-pressed={isPressed('shell', container)}
                    onClick={() => toggle({ is: 'shell', container })}
                  >
                    Shell
                  </button>
                )}
              </span>
            </li>
          )
        })}
      </ul>
      {tool?.is === 'logs' && <LogView key={tool.container} path={path} container={tool.container} />}
      {tool?.is === 'shell' && <Shell key={tool.container} path={path} container={tool.container} />}
    </section>
  )
}

function containerWords(status: ContainerStatus | undefined): { readonly level: string; readonly words: string } {
  if (status === undefined) return { level: 'idle', words: 'Not started yet' }
  const { state, ready, restartCount } = status
  const restarts = restartCount > 0 ? `, ${restartCount} restart${restartCount === 1 ? '' : 's'}` : ''
  if (state?.running && ready) return { level: 'good', words: `Running${restarts}` }
  if (state?.running) return { level: 'warn', words: `Running, not ready${restarts}` }
  if (state?.terminated) {
    const { exitCode, reason } = state.terminated
    const words = `Ended with exit code ${exitCode}${reason ? ` (${reason})` : ''}${restarts}`
    return { level: exitCode === 0 ? 'idle' : 'bad', words }
  }
  const { reason = 'Waiting', message = '' } = state?.waiting ?? {}
  return { level: 'warn', words: `${reason}${message && `: ${message}`}${restarts}` }
}
