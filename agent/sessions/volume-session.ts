/** A copy of a volume that is being moved: to the controller, which passes it on to the node of the other pool, or from there. */
import { type SessionStatus, sessionChannels, type VolumeCopyRequest } from '../../api/sessions.ts'
import { messageOf } from '../../daemon/errors.ts'
import type { VolumeCopies } from '../pods/volumes/volume-moves.ts'
import { incomingPieces } from './incoming-pieces.ts'
import { SessionRefusal } from './session-refusal.ts'
import type { OpenSession } from './session-types.ts'

/** Resolves when the copy is sent, or is on the disk. */
export async function copyVolume(
  { direction, uid, move, round }: VolumeCopyRequest,
  copies: VolumeCopies,
  { frames, signal, started }: OpenSession,
): Promise<Omit<SessionStatus, 'state'>> {
  const wanted = { uid, move, round }
  const { output, end } = sessionChannels
  await started()
  try {
    if (direction === 'send') {
      await copies.send(wanted, (piece) => frames.send(output, piece), signal)
      await frames.send(end, Buffer.of(output))
      return {}
    }
    await copies.receive(wanted, incomingPieces(frames), signal)
    return {}
  } catch (error) {
    // A VolumeError: its message is for people.
    if (error instanceof Error && error.name === 'VolumeError')
      throw new SessionRefusal('InternalError', messageOf(error), { cause: error })
    throw error
  }
}
