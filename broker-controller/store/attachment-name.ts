/** The name of the VolumeAttachment of a volume on a node: attachers and people expect Kubernetes' (getAttachmentName in pkg/volume/csi). */
import { createHash } from 'node:crypto'

export function attachmentName(of: {
  readonly driver: string
  readonly handle: string
  readonly node: string
}): string {
  return `csi-${createHash('sha256').update(`${of.handle}${of.driver}${of.node}`).digest('hex')}`
}
