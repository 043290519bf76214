/**
 * What clients with a user interface ask when they start, and the fields of the answers that they read: Headlamp, k9s, Lens (Freelens)
 * and Homepage. Taken from their sources; each list is in the order of its client.
 */

export type ClientRequest = {
  readonly path: string
  readonly accept?: string
  readonly body?: object
  readonly as?: 'text'
}
export type ClientStep = readonly [ClientRequest, expected: object]

const json = 'application/json'
const metaTable = (version: string) => `application/json;as=Table;v=${version};g=meta.k8s.io`
const accessReviews = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
const rulesReviews = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews'

/** kubernetes-sigs/headlamp: frontend/src/lib/k8s, apiDiscovery.tsx, clusterApi.ts, KubeObject.ts, docs.ts and others. */
export const headlamp: readonly ClientStep[] = [
  [{ path: '/version' }, { body: { major: '1', minor: /^\d+$/, gitVersion: /^v1\./, platform: String } }],
  [
    { path: '/healthz', as: 'text' },
    { type: /^text\/plain/, body: 'ok' },
  ],
  // Its bodies have no kind.
  [
    { path: rulesReviews, body: { spec: { namespace: 'default' } } },
    { code: 201, body: { status: { resourceRules: [{ verbs: ['*'] }], incomplete: false } } },
  ],
  [
    {
      path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
    },
    { code: 201, body: { status: { userInfo: { username: 'admin', groups: ['system:masters'] } } } },
  ],
  [
    { path: '/api', accept: 'application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList' },
    {
      type: /as=APIGroupDiscoveryList/,
      body: { items: [{ versions: [{ version: 'v1', resources: /"resource":"pods".*"singularResource":"pod"/ }] }] },
    },
  ],
  [
    { path: '/apis', accept: 'application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList' },
    { type: /as=APIGroupDiscoveryList/, body: { items: /"resource":"leases".*"scope":"Namespaced"/ } },
  ],
  [
    { path: accessReviews, body: { spec: { resourceAttributes: { verb: 'list', resource: 'pods', namespace: 'x' } } } },
    { code: 201, body: { status: { allowed: true } } },
  ],
  [
    { path: '/api/v1/pods' },
    {
      body: {
        kind: 'PodList',
        metadata: { resourceVersion: /^\d+$/ },
        items: [{ metadata: { name: 'web', namespace: 'default', uid: String, creationTimestamp: String } }],
      },
    },
  ],
  [{ path: '/api/v1/namespaces/default/events?limit=2000' }, { body: { kind: 'EventList', items: [] } }],
  [{ path: '/apis/metrics.k8s.io/v1beta1/nodes' }, { body: { kind: 'NodeMetricsList', items: [] } }],
  [{ path: '/openapi/v2' }, { body: { swagger: '2.0', definitions: Object } }],
  // Absent groups are looked for at their root.
  [{ path: '/apis/autoscaling.k8s.io/v1' }, { code: 404, body: { kind: 'Status', reason: 'NotFound' } }],
  [
    { path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions' },
    { code: 200, body: { kind: 'CustomResourceDefinitionList', items: [] } },
  ],
]

/** derailed/k9s: internal/client/client.go, internal/dao/registry.go, table.go and dynamic.go. */
export const k9s: readonly ClientStep[] = [
  [{ path: '/version?timeout=15s' }, { body: { gitVersion: /^v1\./, major: '1' } }],
  [{ path: '/api?timeout=15s', accept: `${json}, */*` }, { body: { kind: 'APIVersions', versions: ['v1'] } }],
  [
    { path: '/apis?timeout=15s', accept: `${json}, */*` },
    {
      body: {
        kind: 'APIGroupList',
        groups: /"name":"metrics.k8s.io","versions":\[\{"groupVersion":"metrics.k8s.io\/v1beta1"/,
      },
    },
  ],
  [
    { path: '/api/v1?timeout=15s', accept: `${json}, */*` },
    { body: { kind: 'APIResourceList', groupVersion: 'v1', resources: /"name":"pods".*"verbs":\[[^\]]*"list"/ } },
  ],
  [
    {
      path: accessReviews,
      accept: 'application/vnd.kubernetes.protobuf,application/json',
      body: {
        kind: 'SelfSubjectAccessReview',
        apiVersion: 'authorization.k8s.io/v1',
        metadata: { creationTimestamp: null },
        spec: { resourceAttributes: { namespace: 'default', verb: 'watch', version: 'v1', resource: 'pods' } },
        status: { allowed: false },
      },
    },
    { code: 201, type: json, body: { kind: 'SelfSubjectAccessReview', status: { allowed: true } } },
  ],
  [
    {
      path: '/api/v1/pods?includeObject=Object',
      accept: [metaTable('v1'), metaTable('v1beta1'), json].join(),
    },
    {
      body: {
        kind: 'Table',
        apiVersion: 'meta.k8s.io/v1',
        columnDefinitions: [{ name: 'Name', type: 'string', format: 'name' }],
        rows: [{ cells: ['web'], object: { kind: 'Pod', apiVersion: 'v1', spec: { nodeName: 'pi-1' } } }],
      },
    },
  ],
  [
    { path: '/api/v1/nodes?includeObject=Metadata', accept: [metaTable('v1'), metaTable('v1beta1')].join() },
    { body: { rows: [{ object: { kind: 'PartialObjectMetadata', metadata: { name: 'pi-1' } } }] } },
  ],
  // Its informers: from cache first, then as a list that is a watch.
  [{ path: '/api/v1/namespaces?limit=500&resourceVersion=0' }, { body: { kind: 'NamespaceList', metadata: Object } }],
  [
    {
      path: '/api/v1/nodes?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=1&watch=true',
      as: 'text',
    },
    {
      body: /"type":"ADDED".*"name":"pi-1"[\s\S]*"type":"BOOKMARK".*"k8s.io\/initial-events-end":"true"/,
    },
  ],
  [{ path: '/apis/metrics.k8s.io/v1beta1/pods' }, { body: { kind: 'PodMetricsList', items: [] } }],
]

/** freelensapp/freelens (Lens): packages/core/src/main/cluster*, packages/core/src/common/cluster. */
export const lens: readonly ClientStep[] = [
  [{ path: '/version' }, { body: { gitVersion: /^v1\./ } }],
  [{ path: '/api/v1/namespaces/default' }, { body: { metadata: { uid: String } } }],
  [
    { path: '/api/v1/nodes' },
    {
      body: {
        items: [
          {
            metadata: { name: 'pi-1' },
            status: {
              capacity: { cpu: String, memory: String },
              conditions: [{ type: 'Ready', status: 'True' }],
            },
          },
        ],
      },
    },
  ],
  [{ path: '/api' }, { body: { versions: ['v1'] } }],
  [{ path: '/api/v1' }, { body: { resources: /"kind":"Pod","name":"pods"|"name":"pods".*"kind":"Pod"/ } }],
  [{ path: '/apis' }, { body: { groups: /"versions":\[\{"groupVersion":"apps\/v1","version":"v1"\}\]/ } }],
  [{ path: '/apis/rbac.authorization.k8s.io/v1' }, { body: { resources: /"name":"clusterroles"/ } }],
  [
    {
      path: accessReviews,
      body: {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: { namespace: 'kube-system', resource: '*', verb: 'create' } },
      },
    },
    { code: 201, body: { status: { allowed: true } } },
  ],
  [
    {
      path: rulesReviews,
      body: {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectRulesReview',
        spec: { namespace: 'default' },
      },
    },
    { code: 201, body: { status: { incomplete: false, resourceRules: [{ verbs: ['*'], resources: ['*'] }] } } },
  ],
  [{ path: '/api/v1/namespaces' }, { body: { items: /"name":"kube-system"/ } }],
  [{ path: '/apis/metrics.k8s.io/v1beta1/pods' }, { body: { kind: 'PodMetricsList' } }],
  // An old version of a group: the preferred one is asked next.
  [{ path: '/apis/policy/v1beta1/poddisruptionbudgets' }, { code: 404 }],
  [{ path: '/apis/policy/v1/poddisruptionbudgets' }, { body: { kind: 'PodDisruptionBudgetList', items: [] } }],
]

/** gethomepage/homepage: src/pages/api/kubernetes, src/pages/api/widgets/kubernetes.js; @kubernetes/client-node sends the requests. */
export const homepage: readonly ClientStep[] = [
  [
    { path: '/api/v1/nodes', accept: 'application/json, */*;q=0.8' },
    { body: { items: [{ metadata: { name: 'pi-1' }, status: { capacity: Object, conditions: Array } }] } },
  ],
  [{ path: '/apis/metrics.k8s.io/v1beta1/nodes' }, { body: { items: [] } }],
  [
    { path: `/api/v1/namespaces/default/pods?labelSelector=${encodeURIComponent('app.kubernetes.io/name=web')}` },
    {
      body: {
        items: [{ metadata: { name: 'web' }, spec: { containers: [{ name: 'main' }] }, status: { phase: 'Running' } }],
      },
    },
  ],
  [
    {
      path: `/api/v1/namespaces/default/pods?labelSelector=${encodeURIComponent('app.kubernetes.io/name in (none)')}`,
    },
    { body: { items: [] } },
  ],
  [{ path: '/apis/metrics.k8s.io/v1beta1/namespaces/default/pods' }, { body: { kind: 'PodMetricsList' } }],
  [{ path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ingressroutes.traefik.io' }, { code: 404 }],
]
