SELECT rdmacc.tpce_market_feed(f.symbols, f.prices, f.quantities)
  FROM rdmacc.tpce_draw_feed(rdmacc.tpce_securities(:customers)) f;
