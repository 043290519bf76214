import { test } from 'tap'
import { socketEncoding } from './socket-encoding.ts'

const message = Buffer.from('\u0001out')

test('messages are sent as they are', async (t) => {
  for (const protocol of ['', 'channel.k8s.io', 'binary.k8s.io', 'v4.channel.k8s.io', 'v5.channel.k8s.io']) {
    const { encode, decode } = socketEncoding(protocol)
    t.equal(encode(message), message)
    t.equal(decode(message), message)
  }
})

test('base64 covers the data of a channel, whose number is a digit', async (t) => {
  for (const protocol of ['base64.channel.k8s.io', 'v4.base64.channel.k8s.io']) {
    const { encode, decode } = socketEncoding(protocol)
    t.equal(encode(message), '1b3V0')
    t.equal(encode(Buffer.of(3)), '3')
    t.same(decode(Buffer.from('0b3V0')), Buffer.from('\0out'))
    t.same(decode(Buffer.from('4')), Buffer.of(4))
    for (const wrong of ['', 'xb3V0', '/b3V0', ':b3V0']) t.equal(decode(Buffer.from(wrong)).length, 0, wrong)
  }
})

test('base64 covers the whole message of a stream without channels', async (t) => {
  const { encode, decode } = socketEncoding('base64.binary.k8s.io')
  t.equal(encode(message), 'AW91dA==')
  t.same(decode(Buffer.from('AW91dA==')), message)
})
