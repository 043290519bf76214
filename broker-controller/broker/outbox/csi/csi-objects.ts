/** Follows the CSIDrivers and VolumeAttachments that the messages of nodes depend on. */
import type { Loop } from '../../../../daemon/run.ts'
import { type InformerNeeds, informer } from '../../../store/informer.ts'
import type { CsiSources } from './node-csi-volume.ts'

export type CsiChanges = {
  readonly driverChanged: (name: string) => void
  /** An attachment to this node changed. */
  readonly attachmentChanged: (node: string) => void
}

export interface CsiObjects extends Required<CsiSources> {
  readonly listed: Promise<unknown>
  readonly loops: readonly Loop[]
}

export function csiObjects(needs: InformerNeeds, { driverChanged, attachmentChanged }: CsiChanges): CsiObjects {
  const drivers = informer(needs, 'csidrivers', (present, previous) => {
    const name = (present ?? previous)?.metadata.name
    if (name !== undefined) driverChanged(name)
  })
  const attachments = informer(needs, 'volumeattachments', (present, previous) => {
    for (const node of new Set([present?.spec.nodeName, previous?.spec.nodeName])) {
      if (node !== undefined) attachmentChanged(node)
    }
  })
  return {
    csiDriver: (name) => drivers.get({ namespace: '', name }),
    attachment: (name) => attachments.get({ namespace: '', name }),
    listed: Promise.all([drivers.listed, attachments.listed]),
    loops: [
      { name: 'node-outbox-csi-drivers', run: drivers.run },
      { name: 'node-outbox-attachments', run: attachments.run },
    ],
  }
}
