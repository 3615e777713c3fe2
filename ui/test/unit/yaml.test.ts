import assert from 'node:assert/strict';
import {test} from 'node:test';
import {yaml} from '../../src/yaml';

test('formats an object as YAML, with its kind and metadata first', () => {
    const object = {
        data: {
            'shop.properties': 'colour=green\n\ncurrency=EUR\n',
            greeting: 'yes',
            empty: '',
            number: '7',
            bool: true,
            none: null,
            spaced: ' x',
            colon: 'a: b',
            hash: 'a #b',
            url: 'http://x/y:80',
        },
        kind: 'ConfigMap',
        apiVersion: 'v1',
        metadata: {name: 'settings', labels: {}, finalizers: []},
        list: [1, 'two', ['three', ['four']], {five: 5, six: [{seven: 'a\nb'}]}],
    };
    assert.equal(
        yaml(object),
        `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  labels: {}
  finalizers: []
data:
  shop.properties: |
    colour=green

    currency=EUR
  greeting: "yes"
  empty: ""
  number: "7"
  bool: true
  none: null
  spaced: " x"
  colon: "a: b"
  hash: "a #b"
  url: http://x/y:80
list:
- 1
- two
- - three
  - - four
- five: 5
  six:
  - seven: |-
      a
      b
`,
    );
});

test('quotes texts that cannot be block scalars', () => {
    for (const text of [
        'a \nb',
        '\ta\nb',
        'a\r\nb',
        '\na',
        'a\u0007\nb',
        '- a',
        '"a"',
        '1e3',
        '0x10',
        '2026-06-01',
        'null',
        'Off',
        '~',
        '&a',
        '*a',
        '%a',
        '@a',
        '`a',
        '|',
        '>',
        '{a',
        '[a',
        '!a',
        'a:',
        '1:20',
    ]) {
        assert.equal(yaml({text}), `text: ${JSON.stringify(text)}\n`);
    }
});
