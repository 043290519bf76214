/** What is wrong with an Ingress, as its Events name it. */
import type { Ingress } from '../../../api/network/ingress.ts'

/** `reason`: of the Event, one CamelCase word. `message` names what is wrong, what follows from it, and the remedy. */
export type IngressProblem = { readonly reason: string; readonly message: string }

export type Decided<T> = { readonly value: T } | { readonly problem: IngressProblem }

/** Older ones first: of two that claim the same, the first keeps it. The order of those of one second is that of their names. */
export function oldestFirst(a: Pick<Ingress, 'metadata'>, b: Pick<Ingress, 'metadata'>): number {
  const text = ({ metadata: { creationTimestamp = '', namespace = '', name = '' } }: Pick<Ingress, 'metadata'>) =>
    `${creationTimestamp} ${namespace}/${name}`
  return text(a) < text(b) ? -1 : 1
}

/** What all files of the proxy together may have. */
export interface FileRoom {
  /** False, and nothing is taken, if this many bytes are not left. */
  take(bytes: number): boolean
}

export function fileRoom(mostBytes: number): FileRoom {
  let left = mostBytes
  return {
    take(bytes) {
      if (bytes > left) return false
      left -= bytes
      return true
    },
  }
}
