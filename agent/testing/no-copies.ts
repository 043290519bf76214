/** A node of which no volume is moved. */
import type { VolumeCopies } from '../pods/volumes/volume-moves.ts'
import { VolumeError } from '../pods/volumes/volume-store.ts'

const refuse = async () => {
  throw new VolumeError('no order asks for it')
}

export const noCopies: VolumeCopies = { send: refuse, receive: refuse }
