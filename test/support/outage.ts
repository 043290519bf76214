/** An outage of the controller, replayed on a fleet of real programs: what Kubernetes' API shows of its nodes and pods before and after. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Controller } from './fleet.ts'
import { joinedFleet } from './joined-fleet.ts'
import { podManifest } from './manifests.ts'
import { image } from './pods.ts'
import { eventually } from './wait.ts'

export type Outage = {
  readonly seconds: number
  readonly graceSeconds: number
  /** A lease's; a heartbeat is sent four times as often. */
  readonly leaseSeconds: number
  readonly monitorPeriodSeconds: number
}

/** With the usual settings. */
export const usualOutage: Outage = { seconds: 600, graceSeconds: 50, leaseSeconds: 40, monitorPeriodSeconds: 5 }

/** Every length of time divided by `factor`, those of the settings like that of the outage. */
export function compressed(factor: number): Outage {
  const { seconds, graceSeconds, leaseSeconds, monitorPeriodSeconds } = usualOutage
  return {
    seconds: seconds / factor,
    graceSeconds: graceSeconds / factor,
    leaseSeconds: leaseSeconds / factor,
    monitorPeriodSeconds: monitorPeriodSeconds / factor,
  }
}

/** Everything that an outage must not change, by name. */
export type FleetState = {
  /** Ready and its transition time, by node. */
  readonly nodes: Readonly<Record<string, string>>
  /** Node, container, Ready with its transition time, and whether it is being deleted, by pod. */
  readonly pods: Readonly<Record<string, string>>
}

export type OutageReport = {
  readonly before: FleetState
  /** Two grace periods after every node was back. */
  readonly after: FleetState
  /** Reasons of the Events of nodes and pods since the controller's return. */
  readonly reasons: readonly string[]
  /** From the controller's "ready" until each node's first heartbeat, in milliseconds. */
  readonly backAfterMs: Readonly<Record<string, number>>
}

const names = ['pi-1', 'pi-2', 'pi-3']

/**
 * Three nodes with a pod each that leaves its node one second after that is not ready, or unreachable. The controller is stopped for the
 * given time and started again with the same data.
 */
export async function replayOutage(t: Test, outage: Outage): Promise<OutageReport> {
  const { graceSeconds, leaseSeconds, monitorPeriodSeconds } = outage
  const { controllerAgain, startReady, ...fleet } = await joinedFleet(t, {
    names,
    controller: {
      nodeMonitorGracePeriod: `${graceSeconds}s`,
      nodeMonitorPeriod: `${monitorPeriodSeconds * 1000}ms`,
    },
    agents: { nodeLeaseDurationSeconds: leaseSeconds },
  })
  let { controller } = fleet
  await startReady()
  for (const name of names) await controller.kubectlWith(pod(name), 'apply', '-f', '-')
  const pods = names.map((name) => `pod/on-${name}`)
  await controller.kubectl('wait', '--for=condition=Ready', ...pods, '--timeout=80s')
  const before = await stateOf(controller)

  await controller.program.stop()
  await delay(outage.seconds * 1000)
  controller = await controllerAgain()
  const readyMs = performance.now()
  const sinceMs = Date.now()
  const backAfterMs: Record<string, number> = {}
  await eventually(
    'every node renews its lease',
    async () => {
      for (const name of await renewedSince(controller, sinceMs))
        backAfterMs[name] ??= Math.round(performance.now() - readyMs)
      return Object.keys(backAfterMs).length === names.length
    },
    { withinMs: graceSeconds * 4000 },
  )
  await delay(graceSeconds * 2000)
  const reasons = await reasonsSince(controller, sinceMs)
  return { before, after: await stateOf(controller), reasons, backAfterMs }
}

function pod(node: string): string {
  const tolerations = ['not-ready', 'unreachable'].map((key) => ({
    key: `node.kubernetes.io/${key}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 1,
  }))
  return podManifest({ name: `on-${node}`, image, spec: { nodeName: node, tolerations } })
}

type Condition = { readonly type: string; readonly status: string; readonly lastTransitionTime: string }
type Listed<Item> = { readonly items: readonly Item[] }
type Named = { readonly metadata: { readonly name: string; readonly deletionTimestamp?: string } }
type ListedNode = Named & { readonly status: { readonly conditions: readonly Condition[] } }
type ListedPod = ListedNode & {
  readonly spec: { readonly nodeName: string }
  readonly status: { readonly containerStatuses: readonly { readonly containerID: string }[] }
}
type ListedLease = Named & { readonly spec: { readonly renewTime?: string } }
type ListedEvent = { readonly reason: string; readonly lastTimestamp: string }

async function stateOf(controller: Controller): Promise<FleetState> {
  const nodes: Listed<ListedNode> = JSON.parse(await controller.kubectl('get', 'nodes', '-o', 'json'))
  const pods: Listed<ListedPod> = JSON.parse(await controller.kubectl('get', 'pods', '-o', 'json'))
  return {
    nodes: Object.fromEntries(nodes.items.map((node) => [node.metadata.name, ready(node)])),
    pods: Object.fromEntries(
      pods.items.map(({ metadata, spec, status }) => {
        const { containerID = 'no container' } = status.containerStatuses[0] ?? {}
        const end = metadata.deletionTimestamp === undefined ? 'stays' : 'is deleted'
        return [metadata.name, `${spec.nodeName} ${containerID} ${ready({ metadata, status })} ${end}`]
      }),
    ),
  }
}

function ready({ status }: ListedNode): string {
  const condition = status.conditions.find(({ type }) => type === 'Ready')
  return `${condition?.status} since ${condition?.lastTransitionTime}`
}

/** A controller that has just started gives its nodes leases itself, with the time of their last report. */
async function renewedSince(controller: Controller, sinceMs: number): Promise<readonly string[]> {
  const leases: Listed<ListedLease> = JSON.parse(
    await controller.kubectl('-n', 'kube-node-lease', 'get', 'leases', '-o', 'json'),
  )
  return leases.items
    .filter(({ spec }) => Date.parse(spec.renewTime ?? '') >= sinceMs)
    .map(({ metadata }) => metadata.name)
}

async function reasonsSince(controller: Controller, sinceMs: number): Promise<readonly string[]> {
  const events: Listed<ListedEvent> = JSON.parse(await controller.kubectl('get', 'events', '-A', '-o', 'json'))
  // Times of Events have whole seconds.
  const recent = events.items.filter(({ lastTimestamp }) => Date.parse(lastTimestamp) >= sinceMs - 1000)
  return [...new Set(recent.map(({ reason }) => reason))].toSorted()
}
