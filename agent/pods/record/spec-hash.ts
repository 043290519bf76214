/** May a container that exists be taken for the one that is wanted? */
import { createHash } from 'node:crypto'
import type { Container } from '../../../api/pod.ts'

/**
 * Covers the name and the image, as HashContainer (pkg/kubelet/container/helpers.go) does: the only fields of a container that may change while its pod
 * lives. Nothing else is in it, so that an agent with new fields or defaults restarts nothing that an older one started.
 */
export function containerHash({ name, image = '' }: Pick<Container, 'name' | 'image'>): string {
  return createHash('sha256')
    .update(JSON.stringify([name, image]))
    .digest('hex')
    .slice(0, 16)
}
