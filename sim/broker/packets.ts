/** The packets of MQTT that cross the network of the world. */

export type ToBroker =
  | {
      readonly cmd: 'connect'
      readonly will: { readonly topic: string; readonly body: string }
      readonly keepaliveSeconds: number
    }
  | {
      readonly cmd: 'publish'
      readonly id: number
      readonly topic: string
      readonly body: string
      readonly qos: 0 | 1
      readonly retain: boolean
    }
  | { readonly cmd: 'subscribe'; readonly id: number; readonly topics: readonly string[] }
  | { readonly cmd: 'pingreq'; readonly id: number }
  | { readonly cmd: 'disconnect' }

export type FromBroker =
  | { readonly cmd: 'connack' }
  /** Answers a publication, a subscription or a ping; a subscription may be refused. */
  | { readonly cmd: 'ack'; readonly id: number; readonly isRefused?: boolean }
  | { readonly cmd: 'message'; readonly topic: string; readonly body: string; readonly isRetained: boolean }
