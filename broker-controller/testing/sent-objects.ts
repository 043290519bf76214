/** Objects as clients send them to the API, and where to. */
import type { Document } from './api-in-memory.ts'

export const configMapsPath = '/api/v1/namespaces/default/configmaps'
export const podsPath = '/api/v1/namespaces/default/pods'

export function sentMap(more: Document = {}, metadata: Document = {}): Document {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', ...metadata }, ...more }
}

export function sentPod(name: string, spec: Document = {}, metadata: Document = {}): Document {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { containers: [{ name: 'main', image: 'busybox' }], ...spec },
  }
}

export function sentNode(name: string): Document {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name } }
}
