import { test } from 'tap'
import { externalBrokerSettings } from './broker-configuration.ts'

function read(mqttBroker: string | undefined) {
  const problems: string[] = []
  return { settings: externalBrokerSettings({ mqttBroker }, problems), problems }
}

test('an external MQTT server is given by host and port', async (t) => {
  t.same(read(undefined), { settings: undefined, problems: [] }, 'left out: the broker is embedded')
  t.same(read('mqtts://10.0.0.1:1883').settings, { host: '10.0.0.1', port: 1883, url: 'mqtts://10.0.0.1:1883' })
  t.same(read('mqtts://broker.lan').settings, { host: 'broker.lan', port: 8883, url: 'mqtts://broker.lan:8883' })
  t.same(read('mqtts://[fd00::1]:8883/').settings, { host: 'fd00::1', port: 8883, url: 'mqtts://[fd00::1]:8883' })
})

test('an address without TLS, with a path or a password is refused', async (t) => {
  for (const wrong of [
    'mqtt://10.0.0.1',
    'mqtts://',
    'mqtts://a/b',
    'mqtts://user:word@a',
    'mqtts://a?b',
    '10.0.0.1:8883',
  ]) {
    const { settings, problems } = read(wrong)
    t.equal(settings, undefined, wrong)
    t.match(problems, [/^mqttBroker: ".*" must be an address like mqtts:\/\/10\.0\.0\.1:8883$/], wrong)
  }
})
