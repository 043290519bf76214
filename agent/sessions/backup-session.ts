/** Backups of volumes: data to the controller, which encrypts it, and from there to the folder of a node; and back. */
import type { BackupFacts, BackupRequest } from '../../api/backups/backup-sessions.ts'
import { type SessionStatus, sessionChannels } from '../../api/sessions.ts'
import { messageOf } from '../../daemon/errors.ts'
import type { VolumeBackups } from '../pods/volumes/volume-backups.ts'
import { incomingPieces } from './incoming-pieces.ts'
import { SessionRefusal } from './session-refusal.ts'
import type { OpenSession } from './session-types.ts'

/** Resolves when it is done: what was to be kept is on the disk. */
export async function backUpVolume(
  { read, store, list, fetch, restore }: BackupRequest,
  backups: VolumeBackups,
  { frames, signal, started }: OpenSession,
): Promise<Omit<SessionStatus, 'state'>> {
  const { request, output, end } = sessionChannels
  const send = (piece: Buffer) => frames.send(output, piece)
  const report = (facts: BackupFacts) => frames.sendText(request, JSON.stringify(facts))
  const sent = () => frames.send(end, Buffer.of(output))
  const next = incomingPieces(frames)
  await started()
  try {
    if (read !== undefined) {
      const contentBytes = await backups.read(read, send, signal)
      await report({ contentBytes })
      await sent()
    } else if (store !== undefined) {
      const opened = (mark: string, made: string | undefined) => report({ mark, ...(made !== undefined && { made }) })
      const manifest = async () => {
        const frame = await frames.next()
        if (frame?.channel !== request) throw new Error('The backup was cut before its manifest')
        return frame.payload.toString()
      }
      const removed = await backups.store(store, { opened, next, manifest }, signal)
      await report({ removed: removed.length })
    } else if (list !== undefined) {
      await backups.list(list, send, signal)
      await sent()
    } else if (fetch !== undefined) {
      await backups.fetch(fetch, send, signal)
      await sent()
    } else if (restore !== undefined) {
      await backups.restore(restore, next, signal)
    } else throw new SessionRefusal('BadRequest', 'the agent is older than the controller')
    return {}
  } catch (error) {
    // A VolumeError: its message is for people.
    if (error instanceof Error && error.name === 'VolumeError')
      throw new SessionRefusal('InternalError', messageOf(error), { cause: error })
    throw error
  }
}
