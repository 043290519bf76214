/** The variables of expressions about a write, and their types (apiserver/pkg/admission/plugin/cel/compile.go). */
import {
  boolType,
  type CelType,
  dynType,
  intType,
  listType,
  mapType,
  objectType,
  opaqueType,
  stringType,
  timestampType,
} from '../../cel/checking/types.ts'

type Fields = { readonly [name: string]: CelType }

const typed = (name: string, fields: Fields): CelType =>
  objectType(`kubernetes.${name}`, new Map(Object.entries(fields)))
const texts = (...names: readonly string[]): Fields => Object.fromEntries(names.map((name) => [name, stringType]))

const kindType = typed('GroupVersionKind', texts('group', 'version', 'kind'))
const resourceType = typed('GroupVersionResource', texts('group', 'version', 'resource'))

/** An AdmissionRequest without the objects, which are variables of their own. */
const requestType = typed('AdmissionRequest', {
  kind: kindType,
  resource: resourceType,
  requestKind: kindType,
  requestResource: resourceType,
  ...texts('subResource', 'requestSubResource', 'name', 'namespace', 'operation'),
  userInfo: typed('UserInfo', {
    ...texts('username', 'uid'),
    groups: listType(stringType),
    extra: mapType(stringType, listType(stringType)),
  }),
  dryRun: boolType,
  options: dynType,
})

const labelsType = mapType(stringType, stringType)

const namespaceType = typed('Namespace', {
  metadata: typed('NamespaceMetadata', {
    ...texts('name', 'generateName', 'namespace', 'UID', 'resourceVersion'),
    labels: labelsType,
    annotations: labelsType,
    creationTimestamp: timestampType,
    deletionTimestamp: timestampType,
    deletionGracePeriodSeconds: intType,
    generation: intType,
    finalizers: listType(stringType),
  }),
  spec: typed('NamespaceSpec', { finalizers: listType(stringType) }),
  status: typed('NamespaceStatus', {
    phase: stringType,
    conditions: listType(
      typed('NamespaceCondition', {
        ...texts('status', 'type', 'message', 'reason'),
        lastTransitionTime: timestampType,
      }),
    ),
  }),
})

/** What of a policy its expressions may name. */
export type DeclaredVariables = {
  readonly hasParams: boolean
  readonly hasAuthorizer: boolean
  /** Types of the variables of the policy, by name; undefined: it can have none. */
  readonly composed?: ReadonlyMap<string, CelType>
  /** The types of `object` and `oldObject`, and of `params`; undefined: these may have any type. */
  readonly object?: CelType | undefined
  readonly params?: CelType | undefined
}

/** Variables of a webhook's match condition. */
export const conditionVariables: DeclaredVariables = { hasParams: false, hasAuthorizer: true }

export const resourceCheckName = 'authorizer.requestResource'

export function variableTypes(declared: DeclaredVariables): ReadonlyMap<string, CelType> {
  const { hasParams, hasAuthorizer, composed, object = dynType, params = dynType } = declared
  return new Map<string, CelType>([
    ['object', object],
    ['oldObject', object],
    ['request', requestType],
    ['namespaceObject', namespaceType],
    ...(hasParams ? ([['params', params]] as const) : []),
    ...(hasAuthorizer
      ? ([
          ['authorizer', opaqueType('kubernetes.authorization.Authorizer')],
          [resourceCheckName, opaqueType('kubernetes.authorization.ResourceCheck')],
        ] as const)
      : []),
    ...(composed === undefined ? [] : ([['variables', objectType('kubernetes.variables', composed)]] as const)),
  ])
}

const plainKinds: ReadonlySet<string> = new Set([
  ...['null', 'bool', 'int', 'uint', 'double', 'string', 'bytes', 'timestamp', 'duration'],
])

/** The type of a variable of a policy whose expression has this one: what is neither plain nor made of that is of any type. */
export function composedType(type: CelType): CelType {
  const [first = dynType, second = dynType] = type.parameters
  if (type.kind === 'list') return listType(composedType(first))
  if (type.kind === 'map') return mapType(composedType(first), composedType(second))
  return plainKinds.has(type.kind) ? type : dynType
}
