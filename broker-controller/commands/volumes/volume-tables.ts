/** What `bramble-controller volumes` prints of a fleet. Pure. */

import { volumeProgress } from '../../../api/backups/volume-progress.ts'
import type { FleetPool, FleetTrash, FleetVolume, FleetVolumes } from '../../../api/storage/fleet-volumes.ts'
import { byteText } from '../../../api/text/byte-text.ts'
import { formatDuration } from '../../../daemon/duration.ts'
import { printable } from '../printable.ts'
import { textTable } from '../text-table.ts'

const none = '<none>'
const unknown = '<unknown>'

export function volumesTable({ volumes, pools }: FleetVolumes): string {
  if (volumes.length === 0) return 'No claims and no volumes.\n'
  const states = new Map(pools.map(({ id, state }) => [id, state]))
  const head = ['CLAIM', 'VOLUME', 'STATE', 'NODE', 'POOL', 'REQUESTED', 'USED', 'PODS']
  return table(head, volumes, (row) => [
    row.claim ?? none,
    row.volume ?? none,
    stateText(row),
    row.node ?? (states.get(row.pool ?? '') === 'Missing' ? '<missing>' : none),
    shortId(row.pool) ?? none,
    byteText(row.requestedBytes),
    sizeText(row.usedBytes, row.pool === undefined ? none : unknown),
    row.pods.join(',') || none,
  ])
}

function stateText({ state, move, backup, restore }: FleetVolume): string {
  if (move !== undefined) return `Moving to ${move.to}`
  if (restore !== undefined) return 'Restoring'
  return backup === undefined ? state : 'Backing up'
}

export function poolsTable({ pools }: FleetVolumes): string {
  if (pools.length === 0) return 'No node reports a pool.\n'
  return table(['POOL', 'NODE', 'NAME', 'STATE', 'CAPACITY', 'FREE', 'VOLUMES', 'IN TRASH', 'PATH'], pools, (pool) => [
    pool.id,
    pool.node ?? none,
    pool.name ?? none,
    pool.state,
    sizeText(pool.capacityBytes),
    sizeText(pool.availableBytes),
    String(pool.volumes),
    pool.inTrash === undefined ? unknown : String(pool.inTrash),
    pool.path ?? none,
  ])
}

export function trashTable({ trash, pools }: FleetVolumes): string {
  const notShown = pools.reduce((sum, { inTrash = 0 }) => sum + inTrash, 0) - trash.length
  const more = notShown > 0 ? `${notShown} more are in the trash, and not reported.\n` : ''
  if (trash.length === 0) return more === '' ? 'The trash is empty.\n' : more
  const rows = table(['CLAIM', 'UID', 'NODE', 'SIZE', 'KEPT FOR AT LEAST'], trash, (entry) => [
    entry.claim ?? none,
    entry.uid,
    entry.node,
    sizeText(entry.usedBytes),
    formatDuration(entry.leftSeconds * 1000),
  ])
  return `${rows}${more}`
}

/** `name`: of a volume, or a claim as `namespace/name`. Throws if there is none. */
export function volumeText(name: string, fleet: FleetVolumes): string {
  const claim = claimName(name)
  const found = fleet.volumes.find(({ volume }) => volume === name) ?? fleet.volumes.find((one) => one.claim === claim)
  if (found === undefined) {
    throw new Error(
      `There is no claim ${printable(claim)}, and no volume ${printable(name)}: 'bramble-controller volumes list' lists them`,
    )
  }
  const pool = fleet.pools.find(({ id }) => id === found.pool)
  const inTrash = fleet.trash.filter((entry) => entry.claim === found.claim && entry.claim !== undefined)
  return [
    ...line('Claim', found.claim ?? none),
    ...line('Volume', found.volume ?? none),
    ...line('State', found.state),
    ...line('Now', volumeProgress(found)?.text ?? none),
    ...line('Class', found.storageClass ?? none),
    ...line('Requested', byteText(found.requestedBytes)),
    ...line('Used', sizeText(found.usedBytes, found.pool === undefined ? none : unknown)),
    ...line('Node', found.node ?? none),
    ...line('Path', found.path ?? none),
    ...line('Pool', pool === undefined ? none : `${pool.id} (${poolState(pool)})`),
    ...line('Pods', found.pods.join(', ') || none),
    ...line('Last backup', lastBackupText(found)),
    ...line('In the trash', inTrash.map(trashed).join('; ') || none),
  ].join('')
}

function poolState({ state, availableBytes, capacityBytes }: FleetPool): string {
  if (state === 'Missing') return 'Missing: no node has it. Mount its disk, and restart the agent there'
  const free = availableBytes !== undefined && capacityBytes !== undefined
  return free ? `${state}, ${byteText(availableBytes, Math.floor)} of ${byteText(capacityBytes)} free` : state
}

/** An entry in one line. */
export function trashed({ uid, node, usedBytes, leftSeconds }: FleetTrash): string {
  return printable(`${uid} on ${node}, ${sizeText(usedBytes)}, kept for at least ${formatDuration(leftSeconds * 1000)}`)
}

/** Without a namespace it is `default`. */
export function claimName(name: string): string {
  return name.includes('/') ? name : `default/${name}`
}

/** The folder that a volume of the fleet has on a node. */
export function volumeAt(node: string, path: string, { volumes }: FleetVolumes): FleetVolume | undefined {
  return volumes.find((row) => row.node === node && row.path === path)
}

function lastBackupText({ lastBackup, backupFailure }: FleetVolume): string {
  const failed = backupFailure === undefined ? '' : `; failed at ${backupFailure.time}: ${backupFailure.why}`
  if (lastBackup === undefined) return `${none}${failed}`
  const { time, to, bytes } = lastBackup
  return `${time} in ${to}, ${byteText(bytes)}${failed}`
}

/** By the name of the volume, or of the claim. Throws if there is none. */
export function volumeNamed(subject: string, { volumes }: FleetVolumes): FleetVolume & { readonly volume: string } {
  const claim = claimName(subject)
  const found = volumes.find(({ volume }) => volume === subject) ?? volumes.find((one) => one.claim === claim)
  if (found === undefined)
    throw new Error(`There is no claim and no volume ${subject}: 'bramble-controller volumes' lists them`)
  if (found.volume === undefined) throw new Error(`The claim ${claim} has no volume`)
  return { ...found, volume: found.volume }
}

function table<T>(head: readonly string[], rows: readonly T[], cells: (row: T) => readonly string[]): string {
  return textTable([head, ...rows.map((row) => cells(row).map(printable))])
}

function line(title: string, text: string): readonly string[] {
  return [`${`${title}:`.padEnd(14)}${printable(text)}\n`]
}

function sizeText(bytes: number | undefined, otherwise = unknown): string {
  return bytes === undefined ? otherwise : byteText(bytes)
}

/** The beginning of the id: enough to distinguish the pools of a fleet. */
function shortId(id: string | undefined): string | undefined {
  return id?.slice(0, 8)
}
