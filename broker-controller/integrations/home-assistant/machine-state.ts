/** What Home Assistant shows of one machine, and of the fleet: values by entity. */
import type { NodeCard } from '../../../api/dashboard/dashboard-messages.ts'
import { nodeCard } from '../../../api/dashboard/node-card.ts'
import { type AgentRelease, updateReportOf } from '../../../api/node/agent-update.ts'
import { hardwareIdentityAnnotation } from '../../../api/node/hardware-identity.ts'
import type { Node } from '../../../api/node.ts'
import type { PoolUsage } from '../../../api/storage/volume-messages.ts'
import { isObject } from '../../../api/text/json.ts'
import { releaseIn } from '../../../daemon/process/version.ts'
import { poolPercent } from '../../controllers/volumes/fill-level.ts'
import type { ReceivedUsage } from '../../usage/usage-board.ts'
import { usageRow } from '../../usage/usage-row.ts'
import { shortLine } from './device-ids.ts'
import type { MachineKey, updateKeys } from './machine-entities.ts'

/** Times are seconds since 1970. null: not known now. */
export type EntityValue = string | number | boolean | null

/** A key that is left out: this device has no such entity. */
export type DeviceState = { readonly [key: string]: EntityValue }

export type MachineFacts = {
  readonly node: Node
  /** The newest report; undefined: there is none, or it is too old. */
  readonly usage: ReceivedUsage | undefined
  /** Its pools; undefined: it has not reported since the controller started. */
  readonly pools: readonly PoolUsage[] | undefined
  /** Pods of the node that run. */
  readonly podsRunning: number
  /** That of this controller. */
  readonly latestVersion: string
  /** The release that is rolled out; undefined: none is. */
  readonly target?: Pick<AgentRelease, 'version' | 'sequence'> | undefined
}

/** Home Assistant keeps states of up to 255 characters. */
const longestState = 250
const longestVersion = 64

/**
 * The values of a machine. What it reports at present decides which it has: one without a sensor has no value for it. Of a machine
 * that reports nothing now, what it had before stays (null), so that a lost machine keeps its entities.
 */
export function machineState({ node, usage, pools, podsRunning, latestVersion, target }: MachineFacts): MachineState {
  const card = nodeCard(node, { pods: 0, renewed: undefined })
  const version = versionOf(card)
  return {
    not_ready: card.state !== 'ready',
    connected: card.state === 'ready' || card.state === 'not-ready',
    reason: card.state === 'ready' ? 'Ready' : shortLine(card.why ?? 'Not ready', longestState),
    cordoned: card.cordoned === true,
    pods: podsRunning,
    ...(version !== undefined && { version, ...updateValues(node, version, latestVersion, target) }),
    ...conditionValues(node, card),
    ...usageValues(node, usage),
    ...known({ pool: fullestPool(pools) }, pools === undefined),
  }
}

/** `agent_update` is the installed version: the entity has a template of its own. */
export type MachineState = { readonly [K in MachineKey | (typeof updateKeys)[number]]?: EntityValue }

/** On trial the committed version counts as installed. An agent that does not update itself follows the controller by its package. */
function updateValues(
  node: Node,
  running: string,
  controller: string,
  target: MachineFacts['target'],
): Pick<MachineState, 'agent_update' | (typeof updateKeys)[number]> {
  const report = updateReportOf(node)
  if (report === undefined) return { agent_update: running, latest_version: controller, update_percent: null }
  const { version, sequence, release } = report
  const latest = target !== undefined && target.sequence > sequence ? target.version : controller
  const percent = release?.outcome === 'trial' ? 100 : release?.outcome === 'waiting' ? (release.percent ?? null) : null
  return {
    agent_update: shortLine(version, longestVersion),
    latest_version: shortLine(latest, longestVersion),
    update_percent: percent,
  }
}

/** The release of an agent: `v1.32.4-bramble.0.1.0` → `0.1.0`. What has no release in it is given as it is. */
export function releaseOf(nodeVersion: string): string {
  return shortLine(releaseIn(nodeVersion) ?? nodeVersion, longestVersion)
}

function versionOf({ version }: NodeCard): string | undefined {
  const release = version === undefined ? '' : releaseOf(version)
  return release === '' ? undefined : release
}

function conditionValues({ status }: Node, card: NodeCard): Partial<MachineState> {
  const has = (type: string) => {
    const found = status?.conditions?.find((condition) => condition.type === type)
    return found !== undefined && found.status !== 'Unknown' ? found : undefined
  }
  const throttling = has('ThermalThrottling')
  const [, wear] = /(?<!\d)(\d+) %/.exec(card.wear ?? '') ?? []
  // A node that is lost, or has not reported yet, reports no condition at all: that shows nothing about its sensors.
  const isSilent = card.state === 'lost' || card.state === 'new'
  const values: { readonly [K in MachineKey]?: EntityValue | undefined } = {
    under_voltage: card.powerMeasured ? card.underVoltage === 'now' : undefined,
    under_voltage_since_boot: card.powerMeasured ? card.underVoltage !== undefined : undefined,
    throttled: throttling && throttling.status === 'True',
    card_wear: wear === undefined ? undefined : Number(wear),
  }
  return known(values, isSilent)
}

function usageValues(node: Node, usage: ReceivedUsage | undefined): Partial<MachineState> {
  const row = usage === undefined ? undefined : usageRow(usage, node)
  const [cpu, memory, temperature, disk, load, booted] = row ?? []
  return {
    // The first report has no rate yet.
    ...known({ cpu: cpu ?? undefined }, true),
    ...known({ memory: memory ?? undefined, last_boot: booted ?? undefined }, row === undefined),
    // A report that was asked for by others has nothing of the machine.
    ...known(
      { temperature: temperature ?? undefined, disk: disk ?? undefined, load: load ?? undefined },
      usage?.machine === undefined,
    ),
  }
}

/** In percent; undefined: there is none. */
function fullestPool(pools: readonly PoolUsage[] = []): number | undefined {
  return pools.length === 0 ? undefined : Math.max(...pools.map(poolPercent))
}

/** Without what is undefined, or, if nothing is known at present, with null for it. */
function known(
  values: { readonly [K in MachineKey]?: EntityValue | undefined },
  isSilent: boolean,
): Partial<MachineState> {
  const entries = Object.entries(values).flatMap(([key, value]): readonly (readonly [string, EntityValue])[] =>
    value !== undefined ? [[key, value]] : isSilent ? [[key, null]] : [],
  )
  return Object.fromEntries(entries)
}

/** The kind of board, for people; undefined: the node does not report it. */
export function modelOf({ metadata }: Node): string | undefined {
  const { annotations = {} } = metadata
  const text = modelIn(annotations[hardwareIdentityAnnotation]) ?? annotations['bramble.dev/board']
  const model = shortLine(text ?? '', longestModel)
  return model === '' ? undefined : model
}

const longestModel = 100

function modelIn(identity: string | undefined): string | undefined {
  if (identity === undefined) return undefined
  try {
    const { model } = objectOf(JSON.parse(identity))
    return typeof model === 'string' ? model : undefined
  } catch {
    return undefined
  }
}

function objectOf(value: unknown): { readonly [key: string]: unknown } {
  return isObject(value) ? value : {}
}

export type FleetCounts = {
  readonly ready: number
  readonly total: number
  readonly podsRunning: number
  readonly podsWaiting: number
  readonly alerts: number
  /** Volumes whose last backup failed, and when the latest one was begun, in ms; undefined: no volume was ever backed up. */
  readonly backups: { readonly failed: number; readonly lastMs: number | undefined } | undefined
}

/** The values of the fleet. `version`: of this controller. */
export function fleetState(
  { ready, total, podsRunning, podsWaiting, alerts, backups }: FleetCounts,
  version: string,
): DeviceState {
  return {
    machines_ready: ready,
    machines_total: total,
    machines_not_ready: ready < total,
    pods_running: podsRunning,
    pods_waiting: podsWaiting,
    alerts,
    ...(backups && { backups_failed: backups.failed, backups_failing: backups.failed > 0 }),
    ...(backups?.lastMs !== undefined && { last_backup: Math.floor(backups.lastMs / 1000) }),
    version,
  }
}
