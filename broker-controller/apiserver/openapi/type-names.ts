/**
 * The names of types in the OpenAPI documents: `io.k8s.api.core.v1.Pod`, as Kubernetes names its own (kube-openapi,
 * GetOpenAPIDefinitionName).
 */
import { isCustomName, type Resource } from '../../../api/resources.ts'

const metaPackage = 'io.k8s.apimachinery.pkg.apis.meta.v1'

/** The types that Kubernetes has in place of plain values, and those of answers. */
export const wellKnownTypes = {
  time: `${metaPackage}.Time`,
  microTime: `${metaPackage}.MicroTime`,
  quantity: 'io.k8s.apimachinery.pkg.api.resource.Quantity',
  intOrString: 'io.k8s.apimachinery.pkg.util.intstr.IntOrString',
  listMeta: `${metaPackage}.ListMeta`,
  status: `${metaPackage}.Status`,
  deleteOptions: `${metaPackage}.DeleteOptions`,
  patch: `${metaPackage}.Patch`,
} as const

/** Full name for a name in a schema: `core.v1.Container`, `meta.v1.ObjectMeta`. */
export function nestedTypeName(short: string): string {
  const [, meta] = /^meta\.v1\.(.+)$/.exec(short) ?? []
  return meta === undefined ? `io.k8s.api.${short}` : `${metaPackage}.${meta}`
}

type NamedKind = Pick<Resource, 'group' | 'version' | 'kind'> & { readonly id?: string }

/** Full name of a kind. A group that is not one of Kubernetes is reversed, as a custom resource's is. */
export function kindTypeName({ id = '', group, version, kind }: NamedKind): string {
  if (group === '') return `io.k8s.api.core.${version}.${kind}`
  if (isCustomName(id)) return [...group.split('.').reverse(), version, kind].join('.')
  if (group.endsWith('.k8s.io') || !group.includes('.')) return `io.k8s.api.${group.split('.')[0]}.${version}.${kind}`
  return [...group.split('.').reverse(), version, kind].join('.')
}

/** `CoreV1`, `RbacAuthorizationV1`: in the id of an operation. */
export function operationPrefix({ group, version }: Pick<Resource, 'group' | 'version'>): string {
  const words = group === '' ? ['core'] : group.replace(/\.k8s\.io$/, '').split(/[.-]/)
  return [...words, version].map(capitalised).join('')
}

export function capitalised(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1)
}
