/** A node of which no volume is moved or backed up. */
import type { VolumeBackups } from '../pods/volumes/volume-backups.ts'
import type { VolumeCopies } from '../pods/volumes/volume-moves.ts'
import { VolumeError } from '../pods/volumes/volume-store.ts'

const refuse = async () => {
  throw new VolumeError('no order asks for it')
}

export const noCopies: VolumeCopies = { send: refuse, receive: refuse }
export const noBackups: VolumeBackups = { read: refuse, store: refuse, list: refuse, fetch: refuse, restore: refuse }
