/** Static pods, which a node runs from a file, and their mirror pods in the API. */
import type { KubeObject } from '../meta.ts'
import { mirrorAnnotation } from '../pod.ts'

export const configSourceAnnotation = 'kubernetes.io/config.source'
export const configHashAnnotation = 'kubernetes.io/config.hash'
export const configSeenAnnotation = 'kubernetes.io/config.seen'

type Annotated = Pick<KubeObject, 'metadata'>

/** The machine runs it from a file. True for its mirror pod too, which is a copy. */
export function isStaticPod({ metadata }: Annotated): boolean {
  const source = metadata.annotations?.[configSourceAnnotation]
  return source !== undefined && source !== 'api'
}

/** It runs nothing: it shows in the API what a machine runs from a file. */
export function isMirrorPod(pod: Annotated): boolean {
  return mirroredHash(pod) !== undefined
}

/** Hash that a mirror pod shows: the UID of the static pod on its machine. */
export function mirroredHash({ metadata }: Annotated): string | undefined {
  return metadata.annotations?.[mirrorAnnotation]
}
