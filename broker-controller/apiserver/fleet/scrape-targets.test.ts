import { test } from 'tap'
import { scrapeAddress, targetGroups } from './scrape-targets.ts'

const nodes = [{ metadata: { name: 'pi-1' } }, { metadata: { name: 'pi-2' } }]
const groups = (...jobs: string[]) => [...targetGroups(nodes, 'controller:6443', jobs)]

test('the controller and the parts of each node are targets at the address of the API', async (t) => {
  t.same(
    groups().map(({ labels: { job, node = '', metrics_path } }) => `${job} ${node} ${metrics_path}`),
    [
      'apiserver  /metrics',
      'kube-state-metrics  /metrics/fleet',
      ...['pi-1', 'pi-2'].flatMap((node) => [
        `node-exporter ${node} /metrics`,
        `kubelet ${node} /metrics/cadvisor`,
        `kubelet ${node} /metrics`,
        `kubelet ${node} /metrics/probes`,
      ]),
    ],
  )
  t.ok(groups().every(({ targets }) => targets.length === 1 && targets[0] === 'controller:6443'))
})

test('a node is read through the proxy, under the path that boards select', async (t) => {
  t.match(groups('kubelet')[0], {
    labels: {
      job: 'kubelet',
      node: 'pi-1',
      instance: 'pi-1',
      metrics_path: '/metrics/cadvisor',
      __metrics_path__: '/api/v1/nodes/pi-1/proxy/metrics/cadvisor',
    },
  })
})

test('no two targets are the same series: the machine and the agent are parts of one path', async (t) => {
  const keys = groups().map(({ labels }) => JSON.stringify([labels['__metrics_path__'], labels['__param_part']]))
  t.equal(new Set(keys).size, keys.length)
})

test('jobs can be selected', async (t) => {
  t.same(
    new Set(groups('node-exporter', 'apiserver').map(({ labels }) => labels['job'])),
    new Set<string | undefined>(['apiserver', 'node-exporter']),
  )
  t.same(groups('nothing'), [])
})

test('the address is the one in the request, with the port of HTTPS by default', async (t) => {
  t.equal(scrapeAddress('controller:6443'), 'controller:6443')
  t.equal(scrapeAddress('controller.local'), 'controller.local:443')
  t.equal(scrapeAddress('192.168.1.2:6443'), '192.168.1.2:6443')
  t.equal(scrapeAddress('[fe80::1]:6443'), '[fe80::1]:6443')
  for (const wrong of [undefined, '', 'a b', 'x/y', 'u@host', 'host:port', 'host:1234567', '[::1']) {
    t.equal(scrapeAddress(wrong), undefined, String(wrong))
  }
})
