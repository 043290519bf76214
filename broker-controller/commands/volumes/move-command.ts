/** `volumes move`: what it means is printed before, then how far it is. The controller moves the data; the command only asks, and watches. */

import { moveProgress } from '../../../api/backups/volume-progress.ts'
import type { FleetVolume, FleetVolumes } from '../../../api/storage/fleet-volumes.ts'
import { moveRateAnnotation, moveToAnnotation, usualMoveRate } from '../../../api/storage/volume-move.ts'
import { byteText } from '../../../api/text/byte-text.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { formatDuration } from '../../../daemon/duration.ts'
import { volumeNamed } from './volume-tables.ts'

export type MoveWish = { readonly to: string; readonly bytesPerSecond: number | undefined }

export type MoveWatch = {
  readonly fleet: () => Promise<FleetVolumes>
  /** Writes these annotations on the volume; null: removes it. */
  readonly annotate: (volume: string, annotations: Readonly<Record<string, string | null>>) => Promise<void>
  readonly print: (text: string) => void
  readonly clock: Pick<Clock, 'sleep'>
  readonly signal: AbortSignal
}

const pollMs = 2_000

/** Asks for the move and resolves when it has ended. Throws when it cannot begin, or was rolled back. */
export async function moveVolume(subject: string, wish: MoveWish, watch: MoveWatch): Promise<string> {
  const fleet = await watch.fleet()
  const row = volumeNamed(subject, fleet)
  const estimate = moveEstimate(row, wish, fleet)
  if ('problem' in estimate) throw new Error(estimate.problem)
  watch.print(estimate.text)
  const { to, bytesPerSecond } = wish
  const rate = bytesPerSecond === undefined ? null : String(bytesPerSecond)
  await watch.annotate(row.volume, { [moveToAnnotation]: to, [moveRateAnnotation]: rate })
  let [last, why] = ['', '']
  for (;;) {
    await watch.clock.sleep(pollMs, watch.signal)
    if (watch.signal.aborted)
      return `The move continues. To cancel it: bramble-controller volumes move ${subject} --cancel\n`
    const now = volumeNamed(row.volume, await watch.fleet())
    if (now.move === undefined) {
      if (now.node === to) return `Moved: the data is on ${to}. The old copy is in the trash of ${row.node}.\n`
      throw new Error(
        `Not moved, the data stays on ${row.node}: ${why || `'kubectl describe pv ${row.volume}' has the reason`}`,
      )
    }
    why = now.move.why ?? why
    const text = `${moveProgress(now.move).text}\n`
    if (text !== last) watch.print(text)
    last = text
  }
}

/** Ends a move that has not rewritten the volume yet. */
export async function cancelMove(
  subject: string,
  { fleet, annotate }: Pick<MoveWatch, 'fleet' | 'annotate'>,
): Promise<string> {
  const row = volumeNamed(subject, await fleet())
  if (row.move === undefined) throw new Error(`The volume ${row.volume} is not being moved`)
  if (['place', 'clean'].includes(row.move.phase))
    throw new Error(`The data is on ${row.move.to} already: move it back`)
  await annotate(row.volume, { [moveToAnnotation]: null })
  return `The move to ${row.move.to} is cancelled: pods start where the data is when the nodes have confirmed it.\n`
}

/** What the move takes, in a sentence; or why it cannot be. */
export function moveEstimate(
  row: FleetVolume,
  { to, bytesPerSecond = usualMoveRate }: MoveWish,
  { pools }: FleetVolumes,
): { readonly text: string } | { readonly problem: string } {
  const { claim, node, pods, usedBytes } = row
  if (row.pool === undefined) return { problem: `Only volumes of a pool can be moved: that of ${claim} is not in one` }
  if (row.move !== undefined) return { problem: `${claim} is being moved to ${row.move.to} already` }
  if (row.state !== 'Bound' || claim === undefined) return { problem: 'The volume is not bound to a claim' }
  if (node === undefined) return { problem: `No node has the pool ${row.pool}: mount its disk` }
  if (node === to) return { problem: `The data of ${claim} is on ${to}` }
  // The controller takes the one of the class.
  const targets = pools.filter((pool) => pool.node === to)
  if (targets.length === 0) return { problem: `Node ${to} has no pool: 'bramble-controller volumes pools' lists them` }
  const source = pools.find(({ id }) => id === row.pool)
  const away = [source, ...targets].find((pool) => pool?.state !== 'Ready')
  if (away !== undefined) return { problem: `Node ${away.node} is not ready` }
  const availableBytes = Math.max(...targets.map((pool) => pool.availableBytes ?? Number.POSITIVE_INFINITY))
  if (usedBytes !== undefined && usedBytes > availableBytes)
    return {
      problem: `${claim} has ${byteText(usedBytes)}, and the pool of ${to} has ${byteText(availableBytes)} free`,
    }
  const [size, time] =
    usedBytes === undefined
      ? ['of a size that was not measured yet', '']
      : [`(${byteText(usedBytes)})`, `, at least ${formatDuration(Math.ceil(usedBytes / bytesPerSecond) * 1000)}`]
  const users = pods.length === 0 ? 'No pod uses it' : `Its pods (${pods.join(', ')}) run`
  return {
    text: `Moving ${claim} ${size} from ${node} to ${to}. ${users} while it is copied${time}. Then they are stopped while all is read and compared, and what has changed is copied.\n`,
  }
}
