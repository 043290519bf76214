/** The external MQTT server in the configuration. */
import { isIP } from 'node:net'

export type ExternalBrokerSettings = {
  /** A name, or an address without brackets. */
  readonly host: string
  readonly port: number
  /** `mqtts://HOST:PORT`, for nodes and for the controller. */
  readonly url: string
}

const usualPort = 8883

/** undefined: the broker is embedded. Adds to `problems` what is wrong. */
export function externalBrokerSettings(
  { mqttBroker }: { readonly mqttBroker?: string | undefined },
  problems: string[],
): ExternalBrokerSettings | undefined {
  if (mqttBroker === undefined) return undefined
  const url = URL.canParse(mqttBroker) ? new URL(mqttBroker) : undefined
  const { protocol, hostname = '', port, username, password, pathname = '', search, hash } = url ?? {}
  const isPlain = protocol === 'mqtts:' && `${username}${password}${search}${hash}` === '' && /^\/?$/.test(pathname)
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  if (!isPlain || host === '' || (host !== hostname && isIP(host) === 0)) {
    problems.push(`mqttBroker: ${JSON.stringify(mqttBroker)} must be an address like mqtts://10.0.0.1:8883`)
    return undefined
  }
  const number = Number(port || usualPort)
  return { host, port: number, url: `mqtts://${hostname}:${number}` }
}
