/** One machine: its state, what it uses, its conditions, its pods and events. */
import type { NodeCard, NodeHistory, UsageRow } from '../../api/dashboard/dashboard-messages.ts'
import { concernOf, levelOf, powerWords, stateWords } from '../../api/dashboard/node-view.ts'
import { shownPods } from '../../api/dashboard/pod-view.ts'
import { ago, counted, duration } from '../../api/dashboard/view-words.ts'
import { rebootRequestedAnnotation } from '../../api/node/reboot-annotations.ts'
import type { Node, NodeCondition } from '../../api/node.ts'
import { byteText } from '../../api/text/byte-text.ts'
import { shownConditions } from '../model/condition-view.ts'
import { inventoryFacts } from '../model/inventory-view.ts'
import { callApi, mergePatchType } from './api.ts'
import { Chart } from './chart.tsx'
import { Action } from './dialog.tsx'
import { DoctorSection } from './doctor-section.tsx'
import { DrainButton } from './drain-dialog.tsx'
import { EventList } from './events-view.tsx'
import { useFleet, useNow } from './fleet-stream.ts'
import { useLoaded, useMay } from './hooks.ts'
import { Meters } from './node-tile.tsx'
import { PodList } from './pods-view.tsx'

export function NodePage({ name }: { readonly name: string }) {
  const { fleet } = useFleet()
  const now = useNow()
  const node = fleet.nodes.get(name)
  const usage = fleet.usage.get(name)
  const pods = shownPods(fleet.pods.values(), '', { node: name })
  const events = [...fleet.events.values()]
    .filter(({ object }) => object === `Node/${name}`)
    .sort((a, b) => b.at - a.at)
  const loaded = useLoaded<Node>(`/api/v1/nodes/${encodeURIComponent(name)}`, JSON.stringify(node))
  if (node === undefined) {
    return <p class="empty">{fleet.isComplete ? `There is no machine ${name}.` : 'Loading…'}</p>
  }
  const concern = concernOf(node)
  return (
    <article class="page">
      <nav class="crumbs" aria-label="Path">
        <a href="#/fleet">Fleet</a>
        {node.zone && <a href={`#/fleet?zone=${encodeURIComponent(node.zone)}`}>{node.zone}</a>}
      </nav>
      <div class="lead">
        <h1>
          {name}
          <span class={`verdict ${levelOf(node)}`}>
            {stateWords(node)}
            {node.since !== undefined && ` for ${duration(now - node.since)}`}
          </span>
        </h1>
        <NodeActions node={node} />
      </div>
      {concern !== undefined && (
        <p class={`notice ${levelOf(node)}`}>
          {concern}
          {node.seen !== undefined && ` Last seen ${ago(node.seen, now)}.`}
        </p>
      )}
      <NodeFacts node={node} usage={usage} now={now} />
      <History name={name} usage={usage} />
      <section>
        <h2>Conditions</h2>
        {loaded.problem !== undefined && <p class="notice warn">{loaded.problem}</p>}
        <Conditions conditions={loaded.value?.status?.conditions ?? []} now={now} />
      </section>
      {loaded.value !== undefined && <Inventory node={loaded.value} />}
      <DoctorSection node={node} />
      <section>
        <h2>{counted(pods.length, 'pod')}</h2>
        <PodList pods={pods} />
      </section>
      {events.length > 0 && (
        <section>
          <h2>Events</h2>
          <EventList events={events} />
        </section>
      )}
    </article>
  )
}

function Inventory({ node }: { readonly node: Node }) {
  const facts = inventoryFacts(node)
  if (facts.length === 0) return null
  return (
    <section>
      <h2>Hardware</h2>
      <dl class="fact-list">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

function NodeActions({ node }: { readonly node: NodeCard }) {
  const { name, cordoned, mayReboot } = node
  const mayPatch = useMay({ verb: 'patch', resource: 'nodes', name })
  const mayEvict = useMay({ verb: 'create', resource: 'pods', subresource: 'eviction' })
  const patch = (body: object) =>
    callApi('PATCH', `/api/v1/nodes/${encodeURIComponent(name)}`, { type: mergePatchType, body })
  /** As kubectl: the field is absent where pods may be placed. */
  const setCordon = (isCordoned: boolean) => patch({ spec: { unschedulable: isCordoned || null } })
  const requestReboot = () =>
    patch({ metadata: { annotations: { [rebootRequestedAnnotation]: new Date().toISOString() } } })
  if (!mayPatch) return null
  return (
    <div class="buttons">
      {cordoned ? (
        <Action
          name="Uncordon"
          title={`Uncordon ${name}?`}
          question="New pods may be placed on it again."
          act={() => setCordon(false)}
        />
      ) : (
        <Action
          name="Cordon"
          title={`Cordon ${name}?`}
          question="Its pods keep running; no new pod is placed on it."
          act={() => setCordon(true)}
        />
      )}
      {mayReboot && (
        <Action
          name="Reboot"
          title={`Reboot ${name}?`}
          question="Its pods stop in order and run again on it after the boot. They are not moved to other machines."
          act={requestReboot}
          isDangerous
        />
      )}
      {mayEvict && <DrainButton name={name} cordon={() => setCordon(true)} />}
    </div>
  )
}

function NodeFacts({
  node,
  usage,
  now,
}: {
  readonly node: NodeCard
  readonly usage: UsageRow | undefined
  readonly now: number
}) {
  const power = powerWords(node)
  const booted = usage?.[5] ?? null
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['Power', power?.text ?? 'Not measured'],
    ['Card wear', node.wear ?? 'Not reported'],
    ['Load', usage?.[4] === null || usage === undefined ? undefined : String(usage[4])],
    ['Memory', node.memoryBytes === undefined ? undefined : byteText(node.memoryBytes)],
    ['CPUs', node.cpus === undefined ? undefined : String(node.cpus)],
    ['Pods', node.podCapacity === undefined ? String(node.pods) : `${node.pods} of ${node.podCapacity}`],
    ['Up for', booted === null ? undefined : duration(now - booted)],
    ['Last seen', node.state === 'lost' ? ago(node.seen, now) || 'never' : 'connected'],
    ['Address', node.address],
    ['Agent', node.version],
    ['System', node.system],
    ['Joined', node.created === undefined ? undefined : ago(node.created, now)],
  ]
  return (
    <dl class="fact-list">
      {facts.flatMap(([name, value]) =>
        value === undefined
          ? []
          : [
              <div key={name} class={name === 'Power' ? power?.level : undefined}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>,
            ],
      )}
    </dl>
  )
}

/** Read again each time that a value changes: the controller has added it by then. */
function History({ name, usage }: { readonly name: string; readonly usage: UsageRow | undefined }) {
  const { value } = useLoaded<Partial<NodeHistory>>(
    `/ui/api/history?node=${encodeURIComponent(name)}`,
    JSON.stringify(usage),
  )
  if (value?.cpu === undefined) return <Meters usage={usage} />
  const { stepSeconds = 120, cpu, memory = [], celsius = [], disk = [] } = value
  return (
    <section class="charts" aria-label="The last day">
      <Chart name="CPU" unit="%" values={cpu} stepSeconds={stepSeconds} top={100} />
      <Chart name="Memory" unit="%" values={memory} stepSeconds={stepSeconds} top={100} />
      <Chart name="Temperature" unit="°C" values={celsius} stepSeconds={stepSeconds} top={100} />
      <Chart name="Disk" unit="%" values={disk} stepSeconds={stepSeconds} top={100} />
    </section>
  )
}

function Conditions({ conditions, now }: { readonly conditions: readonly NodeCondition[]; readonly now: number }) {
  return (
    <ul class="conditions">
      {shownConditions(conditions).map(({ type, status, message = '', lastTransitionTime, level }) => {
        const changed = lastTransitionTime === undefined ? undefined : Date.parse(lastTransitionTime) / 1000
        return (
          <li key={type} class={level}>
            <span class="dot" aria-hidden="true" />
            <strong>{type}</strong>
            <span>{status}</span>
            <span class="message">{message}</span>
            <span class="muted">{changed === undefined ? '' : ago(changed, now)}</span>
          </li>
        )
      })}
    </ul>
  )
}
