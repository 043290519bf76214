import { test } from 'tap'
import type { ControllerConfigurationFile } from '../configuration/configuration.ts'
import { settingsOfOthers } from './settings-of-others.ts'

const file: ControllerConfigurationFile = {
  apiVersion: 'bramble.dev/v1alpha1',
  kind: 'ControllerConfiguration',
  nodeMonitorGracePeriod: '2m',
  mqttBroker: 'mqtts://10.0.0.9:8883',
  bindAddress: '10.0.0.1',
  advertiseAddress: '10.0.0.1',
  hosts: ['one.lan'],
  auditLogPath: '/var/log/one.log',
  dashboardCertFile: '/etc/one.crt',
  dashboardKeyFile: '/etc/one.key',
}
const none = { servers: ['https://a:2379'], caFile: undefined, certFile: undefined, keyFile: undefined, prefix: '/p' }

test('what belongs to the fleet is handed on, and what belongs to one machine is not', async (t) => {
  const listen = { apiPort: 6443, mqttPort: 8883, bindAddress: '10.0.0.1' }
  t.same(settingsOfOthers({ etcd: { ...none, caFile: '/etc/ca.crt' }, listen }, file), {
    apiVersion: 'bramble.dev/v1alpha1',
    kind: 'ControllerConfiguration',
    nodeMonitorGracePeriod: '2m',
    mqttBroker: 'mqtts://10.0.0.9:8883',
    apiPort: 6443,
    mqttPort: 8883,
    etcdServers: ['https://a:2379'],
    etcdPrefix: '/p',
    etcdCAFile: '/etc/ca.crt',
  })
})

test('a port that the system picked is that of one machine', async (t) => {
  const listen = { apiPort: 0, mqttPort: 0, bindAddress: undefined }
  const settings = settingsOfOthers({ etcd: none, listen }, file)
  t.notOk('apiPort' in settings || 'mqttPort' in settings)
})
