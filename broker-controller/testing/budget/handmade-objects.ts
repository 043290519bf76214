/**
 * Largest objects that a schema does not describe: those of which the cost is in what several fields, or several objects, mean together.
 * Add one here for what is compared or multiplied.
 */
import { mostNodePorts } from '../../apiserver/kinds/network/service-allocation.ts'
import type { Json } from '../largest-objects.ts'

export type HandmadeObject = {
  readonly what: string
  /** Path of the collection. */
  readonly path: string
  readonly name: string
  /** Objects that must be there. */
  readonly before?: readonly { readonly path: string; readonly body: Json }[]
  /** Other `salt`: other texts where they are free. */
  readonly object: (salt: string) => Json
}

const inDefault = '/api/v1/namespaces/default'
const many = <T>(count: number, item: (number: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, number) => item(number))
const mapOfMany = (count: number, key: (number: number) => string, value: string) =>
  Object.fromEntries(many(count, (number) => [key(number), value]))

/** Items of one, two, three or four values each, below the limit of 16,384 values. */
const most = { ofOne: 16_000, ofTwo: 8_000, ofThree: 5_300, ofFour: 4_000 }

export function handmadeObjects(): readonly HandmadeObject[] {
  return [
    ...services(),
    ...pods(),
    ...insecurePods(),
    ...workloads(),
    ...volumes(),
    ...limits(),
    ...webhooks(),
    ...autoscalers(),
    ...policies(),
  ]
}

function services(): readonly HandmadeObject[] {
  const ofSpec = (what: string, spec: Json | ((salt: string) => Json)): HandmadeObject => ({
    what: `services with ${what}`,
    path: `${inDefault}/services`,
    name: 'large',
    object: (salt) => ({
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'large' } },
      spec: typeof spec === 'function' ? spec(salt) : spec,
    }),
  })
  const ports = (salt: string) => many(mostNodePorts, (number) => ({ name: `${salt}${number}`, port: number + 1 }))
  const both = (salt: string) =>
    many(mostNodePorts, (number) => ({
      name: `${salt}${number}`,
      port: Math.floor(number / 2) + 1,
      protocol: number % 2 ? 'TCP' : 'UDP',
    }))
  const port = { port: 80 }
  return [
    ofSpec('node ports', (salt) => ({ type: 'NodePort', ports: ports(salt) })),
    ofSpec('node ports of both protocols', (salt) => ({ type: 'NodePort', ports: both(salt) })),
    ofSpec('node ports of a load balancer', (salt) => ({
      ...{ type: 'LoadBalancer', externalTrafficPolicy: 'Local', ports: both(salt) },
    })),
    ofSpec('more ports than may have a node port', (salt) => ({
      type: 'NodePort',
      ports: many(most.ofThree, (number) => ({ name: `${salt}${number}`, port: number + 1 })),
    })),
    ofSpec('equal ports', { type: 'NodePort', ports: many(most.ofTwo, () => port) }),
    ofSpec('equal families', { ports: [port], ipFamilies: many(most.ofOne, () => 'IPv4') }),
    ofSpec('families', { ports: [port], ipFamilies: many(most.ofOne, (n) => (n % 2 ? 'IPv4' : 'IPv6')) }),
    ofSpec('equal addresses', { ports: [port], clusterIPs: many(most.ofOne, () => '10.96.0.9') }),
    ofSpec('addresses', { ports: [port], clusterIPs: many(most.ofOne, address) }),
    ofSpec('external addresses', { ports: [port], externalIPs: many(most.ofOne, address) }),
    ofSpec('source ranges', {
      ...{ type: 'LoadBalancer', ports: [port] },
      loadBalancerSourceRanges: many(most.ofOne, (number) => `${address(number)}/32`),
    }),
  ]
}

function address(number: number): string {
  return `203.0.${Math.floor(number / 250) % 250}.${(number % 250) + 1}`
}

/** Beside all that looks at a new pod: a class, defaults, a quota. */
function pods(): readonly HandmadeObject[] {
  const tolerations = many(4_000, (number) => ({ key: `k${number}`, operator: 'Exists' }))
  const amounts = { requests: { cpu: '1m' }, limits: { cpu: '2m' } }
  const runtimeClass = {
    path: '/apis/node.k8s.io/v1/runtimeclasses',
    body: {
      ...{ apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'large' }, handler: 'large' },
      scheduling: { tolerations, nodeSelector: { a: 'b' } },
    },
  }
  const limitRange = {
    path: `${inDefault}/limitranges`,
    body: {
      ...{ apiVersion: 'v1', kind: 'LimitRange', metadata: { name: 'large' } },
      spec: { limits: [{ type: 'Container', ...defaultsOf(2_000) }] },
    },
  }
  const before = [runtimeClass, limitRange, quotaOf('large', 900)]
  const ofSpec = (what: string, spec: Json): HandmadeObject => ({
    what: `pods with ${what}`,
    path: `${inDefault}/pods`,
    name: 'large',
    before,
    object: (salt) => ({
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'large', labels: { app: salt } } },
      spec: { containers: [{ name: 'main', image: 'a', resources: amounts }], ...spec },
    }),
  })
  const names = (prefix: string, count: number) => many(count, (number) => `${prefix}${number}`)
  return [
    ofSpec('tolerations and a class', { runtimeClassName: 'large', tolerations }),
    ofSpec('equal tolerations and a class', {
      ...{ runtimeClassName: 'large', tolerations: many(4_000, () => ({ key: 'a', operator: 'Exists' })) },
    }),
    ofSpec('containers with amounts', {
      containers: names('c', 1_200).map((name) => ({ name, image: 'a', resources: amounts })),
    }),
    ofSpec('containers without amounts', {
      containers: names('c', 1_200).map((name) => ({ name, image: 'a' })),
    }),
    ofSpec('init containers', {
      initContainers: names('i', 1_200).map((name) => ({ name, image: 'a', resources: amounts })),
    }),
    ofSpec('volumes and mounts', {
      volumes: names('v', 2_000).map((name) => ({ name, emptyDir: {} })),
      containers: [
        {
          ...{ name: 'main', image: 'a', resources: amounts },
          volumeMounts: names('v', 2_000).map((name) => ({ name, mountPath: `/${name}` })),
        },
      ],
    }),
    ofSpec('variables that name each other', {
      containers: [
        {
          ...{ name: 'main', image: 'a', resources: amounts },
          env: names('E', most.ofThree - 100).map((name, number) => ({ name, value: `$(E${number - 1})` })),
        },
      ],
    }),
    ofSpec('the most terms', { affinity: { podAntiAffinity: terms(64, 4) } }),
    ofSpec('too many terms', { affinity: { podAntiAffinity: terms(2_700, 0) } }),
    ofSpec('spreading, equal', {
      topologySpreadConstraints: many(3_000, () => ({
        ...{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' },
      })),
    }),
  ]
}

/** Their checks name each container and each of its values. */
function insecurePods(): readonly HandmadeObject[] {
  const ofContainer = (what: string, count: number, securityContext: (number: number) => Json): HandmadeObject => ({
    what: `pods of which Pod Security forbids ${what}`,
    path: `${inDefault}/pods`,
    name: 'large',
    object: (salt) => ({
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'large', labels: { app: salt } } },
      spec: {
        containers: many(count, (number) => ({
          ...{ name: `${'c'.repeat(50)}${number}`, image: 'a', securityContext: securityContext(number) },
        })),
      },
    }),
  })
  return [
    ofContainer('each container', 1_000, () => ({ runAsUser: 0 })),
    ofContainer('all of each container', 700, (number) => ({
      privileged: true,
      capabilities: { add: [`C${number}`] },
      seLinuxOptions: { type: `t${number}`, user: 'u' },
      seccompProfile: { type: 'Unconfined' },
    })),
    ofContainer('the capabilities of one container', 1, () => ({
      capabilities: { add: many(most.ofOne, (number) => `C${number}`) },
    })),
  ]
}

/** Lists whose items a patch or an apply finds by their name. */
function workloads(): readonly HandmadeObject[] {
  const labels = { app: 'a' }
  const deployment = (count: number): HandmadeObject => ({
    what: `deployments with ${count} variables of a container`,
    path: '/apis/apps/v1/namespaces/default/deployments',
    name: 'large',
    object: (salt) => {
      const env = many(count, (number) => ({ name: `E${number}`, value: salt }))
      const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'a', env }] } }
      return {
        ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'large' } },
        spec: { selector: { matchLabels: labels }, template },
      }
    },
  })
  // Above about 5,400 fields an apply is refused, since their managers count, too.
  return [deployment(5_000), deployment(2_600)]
}

/** Terms of anti-affinity, each with this many requirements. */
function terms(count: number, requirements: number): Json {
  const matchExpressions = many(requirements, (number) => ({ key: `k${number}`, operator: 'Exists' }))
  return {
    requiredDuringSchedulingIgnoredDuringExecution: many(count, (number) => ({
      ...{ topologyKey: `zone${number % 2}`, labelSelector: { matchExpressions }, namespaceSelector: {} },
    })),
  }
}

function defaultsOf(count: number): Json {
  const amounts = mapOfMany(count, (number) => `example.com/k${number}`, '1')
  return { default: { cpu: '2m', ...amounts }, defaultRequest: { cpu: '1m', ...amounts } }
}

function quotaOf(name: string, count: number): { readonly path: string; readonly body: Json } {
  return {
    path: `${inDefault}/resourcequotas`,
    body: {
      ...{ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name } },
      spec: {
        hard: { pods: '1000', 'requests.cpu': '1k', ...mapOfMany(count, (n) => `count/k${n}.example.com`, '5') },
      },
    },
  }
}

function volumes(): readonly HandmadeObject[] {
  const modes = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod']
  const equal = many(most.ofOne, () => modes[0])
  const mixed = many(most.ofOne, (number) => modes[number % 4])
  const claim = (accessModes: unknown) => ({ accessModes, resources: { requests: { storage: '1Gi' } } })
  const claims = (what: string, accessModes: unknown): HandmadeObject => ({
    what: `persistentvolumeclaims with ${what}`,
    path: `${inDefault}/persistentvolumeclaims`,
    name: 'large',
    object: (salt) => ({
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'large', labels: { app: salt } } },
      spec: claim(accessModes),
    }),
  })
  const persistent = (what: string, accessModes: unknown): HandmadeObject => ({
    what: `persistentvolumes with ${what}`,
    path: '/api/v1/persistentvolumes',
    name: 'large',
    object: (salt) => ({
      ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'large', labels: { app: salt } } },
      spec: { accessModes, capacity: { storage: '1Gi' }, hostPath: { path: '/large' } },
    }),
  })
  const templates: HandmadeObject = {
    what: 'statefulsets with access modes',
    path: '/apis/apps/v1/namespaces/default/statefulsets',
    name: 'large',
    object: (salt) => ({
      ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'large' } },
      spec: {
        selector: { matchLabels: { app: 'a' } },
        serviceName: salt,
        template: { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'main', image: 'a' }] } },
        volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claim(mixed) }],
      },
    }),
  }
  return [
    claims('equal access modes', equal),
    claims('access modes', mixed),
    persistent('equal access modes', equal),
    persistent('access modes', mixed),
    templates,
  ]
}

function limits(): readonly HandmadeObject[] {
  const scopes = ['NotTerminating', 'NotBestEffort', 'PriorityClass', 'CrossNamespacePodAffinity']
  const quota = (what: string, spec: Json): HandmadeObject => ({
    what: `resourcequotas with ${what}`,
    path: `${inDefault}/resourcequotas`,
    name: 'large',
    object: (salt) => ({
      ...{ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'large', labels: { app: salt } } },
      spec,
    }),
  })
  const range = (what: string, item: (number: number) => Json): HandmadeObject => ({
    what: `limitranges with ${what}`,
    path: `${inDefault}/limitranges`,
    name: 'large',
    object: (salt) => ({
      ...{ apiVersion: 'v1', kind: 'LimitRange', metadata: { name: 'large', labels: { app: salt } } },
      spec: { limits: many(2_000, item) },
    }),
  })
  return [
    quota('counts', { hard: mapOfMany(most.ofOne, (number) => `count/k${number}.example.com`, '5') }),
    quota('requests', { hard: mapOfMany(most.ofOne, (number) => `requests.example.com/k${number}`, '5') }),
    quota('equal scopes', { hard: { pods: '1' }, scopes: many(most.ofOne, () => scopes[0]) }),
    quota('scopes', { hard: { pods: '1' }, scopes: many(most.ofOne, (number) => scopes[number % 4]) }),
    quota('a selector', {
      hard: { pods: '1' },
      scopeSelector: {
        matchExpressions: many(most.ofThree, () => ({ scopeName: 'PriorityClass', operator: 'Exists' })),
      },
    }),
    range('equal items', () => ({ type: 'Container', max: { cpu: '2' }, min: { cpu: '1' } })),
    range('items', (number) => ({ type: `example.com/k${number}`, max: { cpu: '2' }, min: { cpu: '1' } })),
  ]
}

function webhooks(): readonly HandmadeObject[] {
  const webhook = {
    name: 'a.example.com',
    clientConfig: { url: 'https://example.com/a' },
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
  }
  const made = (what: string, more: Json): HandmadeObject => ({
    what: `validatingwebhookconfigurations with ${what}`,
    path: '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
    name: 'large',
    object: (salt) => ({
      ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingWebhookConfiguration' },
      ...{ metadata: { name: 'large', labels: { app: salt } }, webhooks: [{ ...webhook, ...more }] },
    }),
  })
  const rule = { apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*'] }
  const versions = (number: number) => `v${number + 1}`
  return [
    made('versions', { admissionReviewVersions: ['v1', ...many(most.ofOne - 100, (number) => `v${number + 2}`)] }),
    made('equal versions', { admissionReviewVersions: many(most.ofOne, () => 'v1') }),
    made('groups', { rules: [{ ...rule, apiGroups: many(most.ofOne - 100, (number) => `g${number}`) }] }),
    made('versions of a rule', { rules: [{ ...rule, apiVersions: many(most.ofOne - 100, versions) }] }),
    made('operations', { rules: [{ ...rule, operations: many(most.ofOne - 100, () => 'CREATE') }] }),
    made('resources', { rules: [{ ...rule, resources: many(most.ofOne - 100, (number) => `r${number}/*`) }] }),
    made('rules', { rules: many(1_800, () => rule) }),
  ]
}

/** The first version carries what the second one has beside it as JSON in annotations, of 256 KiB. */
function autoscalers(): readonly HandmadeObject[] {
  const annotated = (name: string, item: (number: number) => Json, wrap: (items: unknown) => unknown) => {
    const bytes = 255 * 1024
    const one = JSON.stringify(item(99_999)).length + 1
    const text = JSON.stringify(wrap(many(Math.floor((bytes - 200) / one), item)))
    return {
      what: `horizontalpodautoscalers with ${name}`,
      path: '/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers',
      name: 'large',
      object: (salt: string) => ({
        ...{ apiVersion: 'autoscaling/v1', kind: 'HorizontalPodAutoscaler' },
        metadata: {
          ...{ name: 'large', labels: { app: salt } },
          annotations: { [`autoscaling.alpha.kubernetes.io/${name}`]: text },
        },
        spec: { maxReplicas: 3, scaleTargetRef: { kind: 'Deployment', name: 'a', apiVersion: 'apps/v1' } },
      }),
    }
  }
  const resource = (number: number) => ({ name: `m${number}`, targetAverageUtilization: 5 })
  const condition = (number: number) => ({ type: `c${number}`, status: 'True' })
  const policy = () => ({ Type: 'Pods', Value: 1, PeriodSeconds: 1 })
  return [
    annotated(
      'metrics',
      (number) => ({ type: 'Resource', resource: resource(number) }),
      (items) => items,
    ),
    annotated(
      'metrics',
      () => ({}),
      (items) => items,
    ),
    annotated('conditions', condition, (items) => items),
    annotated('behavior', policy, (items) => ({ ScaleUp: { Policies: items } })),
    annotated(
      'behavior',
      () => ({}),
      (items) => ({ ScaleDown: { Policies: items } }),
    ),
  ]
}

function policies(): readonly HandmadeObject[] {
  const head = { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' }
  const made = (what: string, spec: Json): HandmadeObject => ({
    what: `networkpolicies with ${what}`,
    path: '/apis/networking.k8s.io/v1/namespaces/default/networkpolicies',
    name: 'large',
    object: (salt) => ({ ...head, metadata: { name: 'large', labels: { app: salt } }, spec }),
  })
  const except = many(most.ofOne - 100, (number) => `10.0.${Math.floor(number / 250)}.${number % 250}/32`)
  return [
    made('exceptions', { podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: '10.0.0.0/8', except } }] }] }),
    made('equal ports', {
      podSelector: {},
      ingress: [{ ports: many(most.ofThree, () => ({ protocol: 'TCP', port: 80 })) }],
    }),
    made('policy types', { podSelector: {}, policyTypes: many(most.ofOne, (n) => (n % 2 ? 'Ingress' : 'Egress')) }),
  ]
}
