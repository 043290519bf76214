/** The hash by which an existing container is recognised as the desired one. */
import { createHash } from 'node:crypto'
import type { Container } from '../../../api/pod.ts'

/**
 * Covers the name and the image, as HashContainer (pkg/kubelet/container/helpers.go) does: the only fields of a container that
 * may change during a pod's lifetime. No other field is included, so that an agent with new fields or defaults does not restart
 * the containers of an older one.
 */
export function containerHash({ name, image = '' }: Pick<Container, 'name' | 'image'>): string {
  return createHash('sha256')
    .update(JSON.stringify([name, image]))
    .digest('hex')
    .slice(0, 16)
}
