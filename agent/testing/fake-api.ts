/** The few paths of the API that a node uses, in memory. Nodes are kept; the next answers can be set. */
import type { Node } from '../../api/node.ts'
import type { ApiAnswer, ApiClient } from '../../daemon/api-client.ts'

export interface FakeApi extends Pick<ApiClient, 'get' | 'post' | 'patch'> {
  readonly nodes: Map<string, Node>
  /** The next call is answered with this, or fails with it. */
  next(answer: ApiAnswer | Error): void
}

export function fakeApi(): FakeApi {
  const nodes = new Map<string, Node>()
  const planned: (ApiAnswer | Error)[] = []
  const answer = (otherwise: () => ApiAnswer): Promise<ApiAnswer> => {
    const next = planned.shift()
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(next ?? otherwise())
  }
  const nodeAt = (path: string) => nodes.get(path.slice(path.lastIndexOf('/') + 1))
  return {
    nodes,
    next: (one) => void planned.push(one),
    get: (path) =>
      answer(() => {
        const node = nodeAt(path)
        return node === undefined ? failureStatus(404, 'not found') : of(200, node)
      }),
    post: (_, body) =>
      answer(() => {
        const node = body as Node
        const name = node.metadata.name ?? ''
        if (nodes.has(name)) return failureStatus(409, `nodes "${name}" already exists`)
        nodes.set(name, node)
        return of(201, node)
      }),
    patch: (path, body) =>
      answer(() => {
        const node = nodeAt(path)
        if (node === undefined) return failureStatus(404, 'not found')
        const { metadata } = body as Pick<Node, 'metadata'>
        const merged = {
          ...node.metadata,
          labels: { ...node.metadata.labels, ...metadata.labels },
          annotations: { ...node.metadata.annotations, ...metadata.annotations },
        }
        nodes.set(node.metadata.name ?? '', { ...node, metadata: merged })
        return of(200, node)
      }),
  }
}

/** A Status of failure, as the API answers. */
export function failureStatus(status: number, message: string): ApiAnswer {
  return of(status, { apiVersion: 'v1', kind: 'Status', status: 'Failure', message, code: status })
}

function of(status: number, body: unknown): ApiAnswer {
  return { status, body, dateHeader: undefined }
}
